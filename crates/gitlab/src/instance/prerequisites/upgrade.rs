//! Decides which version is installed now, and why not the requested one.

use std::time::Duration;

use stanchion_api::gitlab::{GitlabVersionMapSpec, Phase};
use stanchion_kernel::Class;
use stanchion_kernel::text::shorten;

use super::super::observe::{Current, Database};
use super::super::target::Wanted;
use super::{Blocker, Check};
use crate::backends::kinds::PERCONA;
use crate::backends::percona;
use crate::flux::{Progress, Release, Running};
use crate::record;
use crate::values::ChartVersion;
use crate::versions::{self, Step, Version, by_chart, path, resolve};

/// How often the database is queried during an upgrade: nothing reports the end of its migrations.
const ASK_AGAIN: Duration = Duration::from_mins(1);

/// The upgrade path to the requested version.
#[derive(Clone, Debug, PartialEq)]
pub struct UpgradePlan {
    /// The requested version.
    pub target: Version,
    /// The current step of the release.
    pub now: Step,
    /// The remaining versions, in order.
    pub path: Vec<Version>,
    /// The running version, if known.
    pub running: Option<Version>,
    /// Why the next step is not taken yet.
    pub held: Option<Held>,
}

/// Why the next step of an upgrade is not taken yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// What it waits for.
    pub wait: Wait,
    /// The blocker that is reported.
    pub blocker: Blocker,
}

/// What the next step of an upgrade waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Somebody has to repair the release.
    FailedRelease,
    /// Flux is at work on the release.
    WorkingRelease,
    /// The database was not asked whether its migrations are finished.
    DatabaseAnswer,
    /// Migrations are not finished.
    Migrations,
    /// The database did not answer.
    UnknownMigrations,
}

impl Wait {
    /// The reason that is reported.
    const fn reason(self) -> &'static str {
        match self {
            Self::FailedRelease => "ReleaseFailed",
            Self::WorkingRelease => "ReleaseAtWork",
            Self::DatabaseAnswer => "AskingForMigrations",
            Self::Migrations => "MigrationsUnfinished",
            Self::UnknownMigrations => "MigrationsUnknown",
        }
    }
}

/// Computes the upgrade path.
pub(super) fn find(wanted: &Wanted, current: &Current, release: Option<&Release>) -> Check<UpgradePlan> {
    let upgrade = plan_upgrade(wanted, current, release)?;
    check_postgres(wanted, current, release, upgrade)
}

fn plan_upgrade(wanted: &Wanted, current: &Current, release: Option<&Release>) -> Check<UpgradePlan> {
    let map = current.map.as_ref();
    let last = predecessor(current)?;
    let ran = release.and_then(|release| release.running.as_ref()).or(last);
    let remembered = wanted.installed.max(recorded(wanted, current));
    let running = ran.and_then(|ran| version_of(ran, map)).or(remembered);
    if let Some(chart) = &wanted.spec.helm.version {
        let now = map.and_then(|map| by_chart(map, chart));
        let now = now.unwrap_or_else(|| unmapped(chart));
        return Ok(UpgradePlan::arrived(now, running));
    }
    let map = map.ok_or_else(|| {
        let words = "GitlabVersionMap default does not exist yet; create it, or set helm.version";
        Blocker::pending("VersionMapMissing", words)
    })?;
    let target = resolve(map, &wanted.spec.version)
        .map_err(|error| Blocker::failed("VersionUnknown", error.to_string()))?;
    let Some(running) = running else {
        return beginning(ran, target);
    };
    let steps = path(map, &running, &target).map_err(|error| {
        let hint = if ran.is_none() && wanted.installed != Some(running) {
            format!(
                ". ConfigMap {} says that {running} ran last on this database; delete it only if the database is new",
                record::name(&wanted.name)
            )
        } else {
            String::new()
        };
        blocked(format!("{error}{hint}"))
    })?;
    let Some(next) = steps.first() else {
        return Ok(UpgradePlan::arrived(target, Some(running)));
    };
    let held = may_go_on(wanted, current, release, &running, next).err();
    let now = if held.is_none() {
        next.clone()
    } else {
        present(
            map,
            release
                .map(|release| release.chart.as_str())
                .or(last.map(|last| last.chart.as_str())),
            &running,
        )?
    };
    Ok(UpgradePlan {
        target: target.version,
        now,
        path: steps.iter().map(|step| step.version).collect(),
        running: Some(running),
        held,
    })
}

/// If no version is known to have run, the target is installed directly.
fn beginning(ran: Option<&Running>, target: Step) -> Check<UpgradePlan> {
    if let Some(running) = ran {
        return Err(blocked(format!(
            "the release runs chart {}, and neither Flux, Helm nor the version map says which version of GitLab that is; \
             add it to GitlabVersionMap default",
            running.chart
        )));
    }
    Ok(UpgradePlan {
        path: vec![target.version],
        ..UpgradePlan::arrived(target, None)
    })
}

/// The present step, which stays while the next one waits. A release that somebody deleted comes back with it.
fn present(map: &GitlabVersionMapSpec, chart: Option<&str>, running: &Version) -> Check<Step> {
    if let Some(chart) = chart {
        return Ok(by_chart(map, chart).unwrap_or_else(|| Step {
            version: *running,
            ..unmapped(chart)
        }));
    }
    resolve(map, &running.to_string())
        .or_else(|_| resolve(map, &running.minor().to_string()))
        .map_err(|error| blocked(format!("{running} ran last, and its chart is not known: {error}")))
}

impl UpgradePlan {
    fn arrived(now: Step, running: Option<Version>) -> Self {
        Self {
            target: now.version,
            now,
            path: Vec::new(),
            running,
            held: None,
        }
    }
}

/// Whether the next step may be taken. A patch release always may, because it has no migrations to wait for.
fn may_go_on(
    wanted: &Wanted,
    current: &Current,
    release: Option<&Release>,
    running: &Version,
    next: &Step,
) -> Result<(), Held> {
    let is_requested = release.is_some_and(|release| release.chart == next.chart);
    if is_requested || next.version.minor() == running.minor() {
        return Ok(());
    }
    if let Some(release) = release {
        let runs = release.running.as_ref();
        let is_idle = runs.is_none_or(|running| running.chart == release.chart);
        match &release.progress {
            // A failed or blocked upgrade is replaced: the previous version still runs.
            Progress::Failed { .. } | Progress::Waiting { .. } if !is_idle => return Ok(()),
            // A chart that is no longer available does not block the next step.
            Progress::Done | Progress::Waiting { .. } => {}
            Progress::Failed { reason, message } => {
                return Err(held(
                    Wait::FailedRelease,
                    format!("{} waits: {reason}: {message}", next.version),
                ));
            }
            Progress::Working(words) => {
                return Err(held(
                    Wait::WorkingRelease,
                    format!("{} waits until Flux is done: {words}", next.version),
                ));
            }
        }
    }
    if !wanted.spec.upgrade.wait_for_migrations {
        return Ok(());
    }
    match &current.database {
        Database::NotAsked => Err(held(
            Wait::DatabaseAnswer,
            format!("{} waits for the database's answer", next.version),
        )),
        Database::Answered(answer) if answer.unfinished == 0 => Ok(()),
        Database::Answered(answer) => Err(held(
            Wait::Migrations,
            format!(
                "{} waits: {} background migrations of {running} are not finished",
                next.version, answer.unfinished
            ),
        )),
        Database::NoAnswer(why) => Err(held(
            Wait::UnknownMigrations,
            format!(
                "{} waits: it is unknown whether the background migrations of {running} are finished: {why}. \
                 spec.upgrade.waitForMigrations: false skips the check",
                next.version
            ),
        )),
    }
}

/// Checks that the version supports the PostgreSQL server. Nothing is changed on one that is too old.
fn check_postgres(
    wanted: &Wanted,
    current: &Current,
    release: Option<&Release>,
    upgrade: UpgradePlan,
) -> Check<UpgradePlan> {
    let Some(server) = server_version(wanted, current) else {
        return Ok(upgrade);
    };
    let needed = *versions::postgres(&upgrade.now.version).start();
    let is_new = release.is_none_or(|release| release.chart != upgrade.now.chart);
    if !is_new || server >= needed {
        return Ok(upgrade);
    }
    Err(blocked_as(
        "PostgresTooOld",
        format!(
            "GitLab {} needs PostgreSQL {needed} or newer, and the server is {server}; upgrade it first",
            upgrade.now.version
        ),
    ))
}

/// The server's major version, if known: from the object of a managed server, or from the query.
fn server_version(wanted: &Wanted, current: &Current) -> Option<u32> {
    if wanted.spec.postgres.managed {
        return percona::version(current.backends.of(&PERCONA).object.as_ref())
            .or(wanted.spec.postgres.version);
    }
    match &current.database {
        Database::Answered(answer) => Some(answer.version),
        Database::NotAsked | Database::NoAnswer(_) => None,
    }
}

/// The release that Helm deployed under this name before the instance existed.
fn predecessor(current: &Current) -> Check<Option<&Running>> {
    match &current.helm {
        None => Ok(None),
        Some(Ok(deployed)) if deployed.chart == "gitlab" => Ok(Some(&deployed.running)),
        Some(Ok(deployed)) => Err(Blocker::human(
            "NotOurs",
            format!(
                "Helm has installed chart {} under the name of this instance; uninstall it, or give the instance another name",
                shorten(&deployed.chart, 64)
            ),
        )),
        Some(Err(why)) => Err(blocked(format!(
            "the Secret of Helm's own release does not say which version runs: {why}. Fix or delete it"
        ))),
    }
}

/// The version that ran last on this database, if recorded.
fn recorded(wanted: &Wanted, current: &Current) -> Option<Version> {
    record::version(current.record.as_ref()?, &super::database(wanted, current)?)
}

fn version_of(running: &Running, map: Option<&GitlabVersionMapSpec>) -> Option<Version> {
    running
        .version
        .or_else(|| by_chart(map?, &running.chart).map(|step| step.version))
}

/// A chart that the map does not have. Charts are nine major versions behind GitLab; nothing else is guessed.
fn unmapped(chart: &str) -> Step {
    let number = ChartVersion::of(chart);
    Step {
        version: Version::new(number.major.saturating_add(9), number.minor, 0),
        chart: chart.to_owned(),
        values: serde_json::Map::new(),
    }
}

fn held(wait: Wait, message: String) -> Held {
    let blocker = Blocker {
        requeue_after: Some(ASK_AGAIN),
        ..Blocker::new(Class::Dependency, Phase::Deploying, wait.reason(), message)
    };
    Held { wait, blocker }
}

fn blocked(message: String) -> Blocker {
    blocked_as("UpgradeBlocked", message)
}

fn blocked_as(reason: &'static str, message: String) -> Blocker {
    Blocker::new(Class::Human, Phase::Failed, reason, message)
}

#[cfg(test)]
mod tests;
