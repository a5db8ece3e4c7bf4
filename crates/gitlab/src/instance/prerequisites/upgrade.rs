//! Decides which version is installed now, and why not the requested one.

mod known;

use std::time::Duration;

use stanchion_api::gitlab::{GitlabVersionMapSpec, Phase};
use stanchion_kernel::Class;

use self::known::Known;
use super::super::observe::{Current, Database};
use super::super::target::Wanted;
use super::{Blocker, Check};
use crate::backends::kinds::PERCONA;
use crate::backends::percona;
use crate::flux::{Progress, Release};
use crate::values::ChartVersion;
use crate::versions::{self, Step, Version, by_chart, installed_by, resolve, unmapped};

/// How often the database is queried during an upgrade: nothing reports the end of its migrations.
const ASK_AGAIN: Duration = Duration::from_mins(1);

/// The upgrade path to the requested version.
#[derive(Clone, Debug, PartialEq)]
pub struct UpgradePlan {
    /// The requested version; `None` if the spec names a range of charts, and Flux chooses one of them.
    pub target: Option<Version>,
    /// The current step of the release.
    pub now: Step,
    /// The remaining versions, in order.
    pub path: Vec<Version>,
    /// The running version, if known.
    pub running: Option<Version>,
    /// A newer version that was begun and never ran. It may have migrated the database.
    pub begun: Option<Version>,
    /// Why the next step is not taken yet.
    pub held: Option<Held>,
}

/// Why the next step of an upgrade is not taken yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Whether it waits for the database's answer.
    pub asks_database: bool,
    /// The blocker that is reported.
    pub blocker: Blocker,
}

/// Computes the upgrade path.
pub(super) fn find(wanted: &Wanted, current: &Current, release: Option<&Release>) -> Check<UpgradePlan> {
    let upgrade = plan_upgrade(wanted, current, release)?;
    check_postgres(wanted, current, release, upgrade)
}

fn plan_upgrade(wanted: &Wanted, current: &Current, release: Option<&Release>) -> Check<UpgradePlan> {
    let map = current.map.as_ref();
    let known = Known::of(wanted, current, release)?;
    if let Some(chart) = &wanted.spec.helm.version {
        return Ok(UpgradePlan::named(map, chart, &known));
    }
    let map = map.ok_or_else(|| {
        let words = "GitlabVersionMap default does not exist yet; create it, or set helm.version";
        Blocker::pending("VersionMapMissing", words)
    })?;
    let target = resolve(map, &wanted.spec.version)
        .map_err(|error| Blocker::failed("VersionUnknown", error.to_string()))?;
    let steps = known.path(wanted, map, &target)?;
    let next = steps.first().unwrap_or(&target);
    let begun = known.to_complete(&target);
    let held = may_go_on(wanted, current, release, known.running.as_ref(), begun, next).err();
    let now = if held.is_none() {
        next.clone()
    } else {
        let last = known.last().filter(|_| begun.is_none());
        let chart = release.map(|release| release.chart.as_str());
        present(
            map,
            chart.or(last.map(|last| last.chart.as_str())),
            known.running.max(begun).as_ref(),
            next,
        )?
    };
    Ok(UpgradePlan {
        target: Some(target.version),
        now,
        path: steps.iter().map(|step| step.version).collect(),
        running: known.running,
        begun: known.begun,
        held,
    })
}

/// The present step, which stays while the next one waits. A release that somebody deleted comes back with it.
fn present(
    map: &GitlabVersionMapSpec,
    chart: Option<&str>,
    running: Option<&Version>,
    next: &Step,
) -> Check<Step> {
    match (chart, running) {
        (Some(chart), running) => Ok(by_chart(map, chart).unwrap_or_else(|| {
            let step = unmapped(chart);
            let version = running.copied().unwrap_or(step.version);
            Step { version, ..step }
        })),
        (None, Some(running)) => resolve(map, &running.to_string())
            .or_else(|_| resolve(map, &running.minor().to_string()))
            .map_err(|error| blocked(format!("{running} ran last, and its chart is not known: {error}"))),
        (None, None) => Ok(next.clone()),
    }
}

impl UpgradePlan {
    /// The chart that the spec names, whatever runs. Its version is in the map, or is that of the running release, or is
    /// estimated until it runs.
    fn named(map: Option<&GitlabVersionMapSpec>, chart: &str, known: &Known<'_>) -> Self {
        let estimate = unmapped(chart);
        let mapped = map.and_then(|map| by_chart(map, chart));
        let running = known.running;
        let runs = running.filter(|_| known.ran.is_some_and(|ran| ran.chart == chart));
        let version = mapped.as_ref().map(|step| step.version).or(runs);
        let is_open = ChartVersion::is_open(chart);
        Self {
            target: version.or((!is_open).then_some(estimate.version)),
            now: mapped.unwrap_or(Step {
                version: version.unwrap_or(estimate.version),
                ..estimate
            }),
            path: Vec::new(),
            running,
            begun: known.begun,
            held: None,
        }
    }
}

/// Whether Flux is at work on a chart that is neither the running one nor the next: it may have migrated the database,
/// and another chart would meet a half migrated one.
fn is_under_way(release: &Release, next: &Step) -> bool {
    let runs = release.running.as_ref();
    release.working_since.is_some()
        && release.chart != next.chart
        && runs.is_none_or(|running| running.chart != release.chart)
}

/// Whether the next step may be taken. A patch release waits for no migrations, because it has none.
fn may_go_on(
    wanted: &Wanted,
    current: &Current,
    release: Option<&Release>,
    running: Option<&Version>,
    begun: Option<Version>,
    next: &Step,
) -> Result<(), Held> {
    if let Some(release) = release.filter(|release| is_under_way(release, next)) {
        return Err(at_work(release, next));
    }
    let is_requested = release.is_some_and(|release| release.chart == next.chart);
    let Some(running) = running.filter(|running| !is_requested && running.minor() != next.version.minor())
    else {
        return Ok(());
    };
    if let Some(release) = release {
        let runs = release.running.as_ref();
        let is_idle = runs.is_none_or(|running| running.chart == release.chart);
        match &release.progress {
            // A chart that is no longer available does not block the next step.
            Progress::Done | Progress::Waiting { .. } => {}
            // A failed upgrade is replaced: the previous version still runs, and its migrations were finished before the
            // upgrade. Those of its patch releases were not asked for, and of a range of charts it is unknown which one
            // was attempted.
            Progress::Failed { .. } if !is_idle => {
                let attempted = installed_by(current.map.as_ref(), &release.chart);
                if attempted.is_some_and(|attempted| attempted.minor() != running.minor()) {
                    return Ok(());
                }
            }
            Progress::Failed { reason, message, .. } => {
                return Err(held(
                    "ReleaseFailed",
                    format!("{} waits: {reason}: {message}", next.version),
                ));
            }
            Progress::Working(_) => return Err(at_work(release, next)),
        }
    }
    // The migrations were finished before it was begun, and nothing would finish those that it has begun itself.
    let was_begun = begun.is_some_and(|begun| begun.minor() == next.version.minor());
    if was_begun || !wanted.spec.upgrade.wait_for_migrations {
        return Ok(());
    }
    match &current.database {
        Database::NotAsked => Err(Held {
            asks_database: true,
            ..held(
                "AskingForMigrations",
                format!("{} waits for the database's answer", next.version),
            )
        }),
        Database::Answered(answer) if answer.unfinished == 0 => Ok(()),
        Database::Answered(answer) => Err(held(
            "MigrationsUnfinished",
            format!(
                "{} waits: {} background migrations of {running} are not finished",
                next.version, answer.unfinished
            ),
        )),
        Database::NoAnswer(why) => Err(held(
            "MigrationsUnknown",
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
    let what = upgrade.target.map_or_else(
        || format!("chart {}", upgrade.now.chart),
        |_| format!("GitLab {}", upgrade.now.version),
    );
    Err(blocked_as(
        "PostgresTooOld",
        format!("{what} needs PostgreSQL {needed} or newer, and the server is {server}; upgrade it first"),
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

/// Flux ends what it is doing before the next step.
fn at_work(release: &Release, next: &Step) -> Held {
    let words = match &release.progress {
        Progress::Working(words) => words.as_str(),
        Progress::Waiting { .. } | Progress::Done | Progress::Failed { .. } => "",
    };
    held(
        "ReleaseAtWork",
        format!(
            "{} waits until Flux is done with chart {}: {words}",
            next.version, release.chart
        ),
    )
}

fn held(reason: &'static str, message: String) -> Held {
    Held {
        asks_database: false,
        blocker: Blocker {
            requeue_after: Some(ASK_AGAIN),
            ..Blocker::new(Class::Dependency, Phase::Deploying, reason, message)
        },
    }
}

fn blocked(message: String) -> Blocker {
    blocked_as("UpgradeBlocked", message)
}

fn blocked_as(reason: &'static str, message: String) -> Blocker {
    Blocker::new(Class::Human, Phase::Failed, reason, message)
}

#[cfg(test)]
mod tests;
