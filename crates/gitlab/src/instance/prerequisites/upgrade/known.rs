//! What is known about the versions of an instance's database: from Flux, from Helm, from the status and from the record.

use stanchion_api::gitlab::GitlabVersionMapSpec;
use stanchion_kernel::text::shorten;

use super::super::super::observe::Current;
use super::super::super::target::Wanted;
use super::super::{Blocker, Check, database};
use super::blocked;
use crate::flux::{Release, Running};
use crate::helm::Deployed;
use crate::record::{self, Versions};
use crate::versions::{Blocked, Step, Version, installed_by, path, path_after_begun, version_of};

/// The versions of a database.
pub(super) struct Known<'a> {
    /// What runs, or ran last, as Flux or Helm says.
    pub ran: Option<&'a Running>,
    /// The version that runs, or ran last.
    pub running: Option<Version>,
    /// A newer version that Flux or Helm has begun to install, which may have migrated the database. It never ran.
    pub begun: Option<Version>,
    release: Option<&'a Release>,
    recorded: Versions,
    /// The release of Helm itself, if Flux has none.
    helm: Option<&'a Deployed>,
    /// The version that it has begun to install.
    tried: Option<Version>,
}

impl<'a> Known<'a> {
    pub(super) fn of(wanted: &Wanted, current: &'a Current, release: Option<&'a Release>) -> Check<Self> {
        let map = current.map.as_ref();
        let helm = predecessor(current)?;
        let last = helm.filter(|helm| has_run(helm)).map(|helm| &helm.running);
        let tried = helm.filter(|helm| !has_run(helm)).and_then(|helm| {
            version_of(&helm.running, map).or_else(|| installed_by(map, &helm.running.chart))
        });
        let recorded = database(wanted, current)
            .map(|database| Versions::read(current.record.as_ref(), &database))
            .unwrap_or_default();
        let ran = release.and_then(|release| release.running.as_ref()).or(last);
        let running = ran
            .and_then(|ran| version_of(ran, map))
            .or(wanted.installed.max(recorded.ran));
        let begun = Versions {
            begun: recorded.begun.max(tried),
            ..recorded
        };
        Ok(Self {
            ran,
            running,
            begun: begun.now(running, release, map).begun,
            release,
            recorded,
            helm,
            tried,
        })
    }

    /// What Helm itself installed, if Flux has no release.
    pub(super) fn last(&self) -> Option<&'a Running> {
        self.helm.filter(|helm| has_run(helm)).map(|helm| &helm.running)
    }

    /// The begun version that the path has to respect. While Flux is at work, nothing is decided. What still runs in this
    /// release may be requested again: it runs on this database in any case.
    pub(super) fn to_complete(&self, target: &Step) -> Option<Version> {
        let is_at_work = self
            .release
            .is_some_and(|release| release.working_since.is_some());
        let is_up = self.release.is_some_and(|release| release.running.is_some());
        let is_kept = is_up && self.running == Some(target.version);
        self.begun.filter(|_| !is_at_work && !is_kept)
    }

    /// The steps to `target`.
    pub(super) fn path(
        &self,
        wanted: &Wanted,
        map: &GitlabVersionMapSpec,
        target: &Step,
    ) -> Check<Vec<Step>> {
        let running = self.running.as_ref();
        if let (None, Some(ran)) = (running, self.ran) {
            return Err(blocked(format!(
                "the release runs chart {}, and neither Flux, Helm nor the version map says which version of GitLab that is; \
                 add it to GitlabVersionMap default",
                ran.chart
            )));
        }
        let steps = match (running, self.to_complete(target)) {
            (running, Some(begun)) => path_after_begun(map, running, begun, target),
            (Some(running), None) => path(map, running, target),
            // The first installation.
            (None, None) => Ok(vec![target.clone()]),
        };
        steps.map_err(|error| {
            let hint = self.hint(wanted, &error).unwrap_or_default();
            blocked(format!("{error}{hint}"))
        })
    }

    /// Where a version is recorded that does not run, and what to do if the database is new.
    fn hint(&self, wanted: &Wanted, error: &Blocked) -> Option<String> {
        let record = || format!("ConfigMap {}", record::name(&wanted.name));
        let history = || "Helm's own history of the release".to_owned();
        let (version, sources) = match error {
            Blocked::BelowBegun { begun, .. } | Blocked::BegunMissing { begun, .. } => {
                let release = self.release.filter(|release| release.has_begun());
                let sources = [
                    release.map(|release| format!("HelmRelease {}", release.object)),
                    (self.tried == Some(*begun)).then(history),
                    (self.recorded.begun == Some(*begun)).then(record),
                ];
                (begun, sources)
            }
            Blocked::Downgrade { running, .. } | Blocked::StopMissing { running, .. } => {
                let is_up = self.release.is_some_and(|release| release.running.is_some());
                if is_up || self.helm.is_some_and(|helm| helm.runs) {
                    return None;
                }
                let is_last = self.last().is_some() && self.running == Some(*running);
                let sources = [
                    is_last.then(history),
                    (wanted.installed == Some(*running)).then(|| "status.installedVersion".to_owned()),
                    (self.recorded.ran == Some(*running)).then(record),
                ];
                (running, sources)
            }
        };
        let sources: Vec<_> = sources.into_iter().flatten().collect();
        let records = match sources.len() {
            0 => return None,
            1 => "records",
            _ => "record",
        };
        let sources = sources.join(" and ");
        Some(format!(
            ". {sources} {records} {version} as the last version that ran, or was started, on this database. Delete {sources} \
             only if the database is new"
        ))
    }
}

/// Whether it has run: of what was uninstalled, only the record is left.
fn has_run(helm: &Deployed) -> bool {
    helm.runs || helm.gone
}

/// The release that Helm deployed under this name before the instance existed. Of another chart that is uninstalled, only
/// the record is left, and Flux replaces it.
fn predecessor(current: &Current) -> Check<Option<&Deployed>> {
    match &current.helm {
        None => Ok(None),
        Some(Ok(deployed)) if deployed.chart == "gitlab" => Ok(Some(deployed)),
        Some(Ok(deployed)) if deployed.gone => Ok(None),
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
