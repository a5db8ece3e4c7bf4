//! Caches results between two reconciles of a project, so that a rollout does not cost a connection for each pod that
//! becomes ready. Nothing here is needed after a restart.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use stanchion_kernel::watch::dependencies::Key;
use tokio::time::Instant;

use super::dependency_check::{CheckResult, Initialised};
use super::pods::StalledRollout;
use super::render_inputs::RenderInputs;

/// How often the database and the bucket are checked if nothing changes.
const CHECK_EVERY: Duration = Duration::from_secs(30);
/// Additional time for each project: at most two projects a second are checked.
const FOR_EACH: Duration = Duration::from_millis(500);
/// Delay of the first dependency check after a start, for one project and for each further one: children come first.
const REPAIR_WINDOW: Duration = Duration::from_secs(1);
const AFTER_EACH: Duration = Duration::from_millis(20);
/// A project that was not checked for this many intervals is removed from the cache.
const FORGOTTEN: u32 = 5;

/// The results of the dependency checks.
#[derive(Clone)]
pub struct Checked {
    /// Digest of the inputs.
    pub inputs: [u8; 32],
    /// The database's server, as `host:port`.
    pub server: String,
    /// Time of the check.
    pub at: Instant,
    /// The database's answer.
    pub postgres: CheckResult,
    /// The bucket's answer.
    pub s3: CheckResult,
    /// The prepared database, if it is.
    pub database: Option<Initialised>,
}

impl Checked {
    /// Whether the results are still valid, as long as their inputs are the same and nobody has lost the server since.
    pub fn holds(&self, within: Duration) -> bool {
        let fine = self.postgres.answered() && self.s3.answered() && self.database.is_some();
        fine && self.at.elapsed() < within
    }
}

/// A converged project and its inputs. While none of them changes there is nothing to read and nothing to do, however
/// often its pods come and go.
#[derive(Clone, PartialEq)]
pub(crate) struct Converged {
    /// The generation of the spec.
    pub generation: Option<i64>,
    /// The request for new keys.
    pub rotate: Option<String>,
    /// The Secrets that were read.
    pub secrets: Vec<String>,
    /// The `ConfigMaps` that were read.
    pub config_maps: BTreeSet<String>,
    /// Digest of the children.
    pub children: [u8; 32],
}

/// The results for a spec, and the dependency checks.
pub struct Resolved {
    /// The inputs of the children.
    pub render_inputs: Arc<RenderInputs>,
    /// The database's answer.
    pub postgres: CheckResult,
    /// The bucket's answer.
    pub s3: CheckResult,
    /// The database has everything.
    pub database: Initialised,
    /// How long the dependency checks stay valid.
    pub left: Duration,
}

#[derive(Default)]
struct Known {
    checked: Option<Checked>,
    converged: Option<Converged>,
    /// The inputs of the children, and the digest of what they were read for.
    render_inputs: Option<([u8; 32], Arc<RenderInputs>)>,
    stalled: Option<StalledRollout>,
    /// When its dependencies are first checked, if this process has only reconciled its children yet.
    due: Option<Instant>,
    /// The first reconcile by this process has repaired children.
    repaired: bool,
}

/// What a project reads from the cache about its dependencies.
#[derive(Default)]
pub(crate) struct LastCheck {
    /// The last results.
    pub checked: Option<Checked>,
    /// Whether they are still valid, as long as their inputs are the same.
    pub holds: bool,
}

/// The cache of all projects. `observe` reads it and forgets what is outdated, and `apply` writes it.
#[derive(Default)]
pub(crate) struct ProjectCache(Mutex<All>);

#[derive(Default)]
struct All {
    projects: HashMap<Key, Known>,
    /// When a project last lost each server. An earlier check of it proves nothing any more, also one that is remembered
    /// only afterwards.
    lost: HashMap<String, Instant>,
}

impl All {
    /// Whether its server was not lost since a check.
    fn is_valid(&self, checked: &Checked) -> bool {
        let lost = self.lost.get(&checked.server);
        lost.is_none_or(|lost| *lost < checked.at)
    }

    /// The last check of a project, if it succeeded and still counts.
    fn valid<'a>(&self, known: &'a Known, within: Duration) -> Option<&'a Checked> {
        let checked = known.checked.as_ref()?;
        (self.is_valid(checked) && checked.holds(within)).then_some(checked)
    }

    /// A server was lost: the projects whose last result from it no longer counts. Each is returned once.
    fn invalidate_server(&mut self, server: &str) -> Vec<Key> {
        let is_affected = |known: &Known| {
            let checked = known.checked.as_ref();
            checked.is_some_and(|checked| {
                checked.server == server && checked.postgres.answered() && self.is_valid(checked)
            })
        };
        let affected = self.projects.iter().filter(|(_, known)| is_affected(known));
        let mut affected: Vec<Key> = affected.map(|(key, _)| key.clone()).collect();
        affected.sort_unstable();
        self.lost.insert(server.to_owned(), Instant::now());
        affected
    }
}

/// How long results stay valid with this many projects.
fn check_every(projects: usize) -> Duration {
    let projects = u32::try_from(projects).unwrap_or(u32::MAX);
    CHECK_EVERY.max(FOR_EACH.saturating_mul(projects))
}

impl ProjectCache {
    /// How long results stay valid while nothing seems wrong.
    pub(crate) fn check_every(&self) -> Duration {
        check_every(self.lock().projects.len())
    }

    /// The last results.
    pub(crate) fn last_check(&self, key: &Key, within: Duration) -> LastCheck {
        let all = self.lock();
        let Some(known) = all.projects.get(key) else {
            return LastCheck::default();
        };
        LastCheck {
            holds: all.valid(known, within).is_some(),
            checked: known.checked.clone(),
        }
    }

    /// Remembers results, and removes those of projects that were not reconciled for long: they are gone. If the server
    /// is lost that answered before, all other projects on it have lost it, too: they are returned. So is this project, if
    /// another one has lost the server since this one asked it.
    pub(crate) fn check(&self, key: &Key, checked: Checked) -> Vec<Key> {
        let mut all = self.lock();
        let remembered = check_every(all.projects.len()) * FORGOTTEN;
        let fresh = |known: &Known| {
            let checked = known.checked.as_ref().map(|checked| checked.at);
            let last = checked.or(known.due);
            last.is_some_and(|at| at.elapsed() < remembered)
        };
        all.projects.retain(|_, known| fresh(known));
        all.lost.retain(|_, at| at.elapsed() < remembered);
        let is_lost = checked.postgres.is_lost() && !checked.postgres.is_refusal();
        let is_outdated = checked.postgres.answered() && !all.is_valid(&checked);
        let server = checked.server.clone();
        let known = all.projects.entry(key.clone()).or_default();
        let before = known.checked.replace(checked);
        let was_there = before.is_some_and(|before| before.postgres.answered());
        if is_lost && was_there {
            return all.invalidate_server(&server);
        }
        is_outdated.then(|| key.clone()).into_iter().collect()
    }

    /// For the first reconcile of a project by this process: how long its dependency check is delayed, because other
    /// projects may have children to repair. `None` for every later one.
    pub(crate) fn first_look(&self, key: &Key) -> Option<Duration> {
        let all = self.lock();
        let known = all.projects.get(key);
        if known.is_some_and(|known| known.checked.is_some() || known.due.is_some()) {
            return None;
        }
        let others = all.projects.iter().filter(|(other, _)| *other != key);
        let waiting = others.filter(|(_, known)| known.checked.is_none()).count();
        let waiting = u32::try_from(waiting).unwrap_or(u32::MAX);
        Some(REPAIR_WINDOW + AFTER_EACH.saturating_mul(waiting))
    }

    /// Remembers that the first look has happened, and when the dependencies are checked.
    pub(crate) fn postpone(&self, key: &Key, wait: Duration) {
        self.lock().projects.entry(key.clone()).or_default().due = Instant::now().checked_add(wait);
    }

    /// Remembers that the first look has repaired children.
    pub(super) fn set_repaired(&self, key: &Key) {
        self.lock().projects.entry(key.clone()).or_default().repaired = true;
    }

    /// Whether children were repaired after the start, and the dependencies were not checked since.
    pub(super) fn is_repaired(&self, key: &Key) -> bool {
        let all = self.lock();
        all.projects
            .get(key)
            .is_some_and(|known| known.repaired && known.checked.is_none())
    }

    /// A server was lost: the projects whose last result from it no longer counts. Each is returned once.
    pub(crate) fn invalidate_server(&self, server: &str) -> Vec<Key> {
        self.lock().invalidate_server(server)
    }

    /// Remembers that the database is prepared.
    pub(crate) fn initialised(&self, key: &Key, database: Initialised) {
        if let Some(checked) = self
            .lock()
            .projects
            .get_mut(key)
            .and_then(|known| known.checked.as_mut())
        {
            checked.database = Some(database);
        }
    }

    /// Remembers that a project is converged.
    pub(crate) fn set_converged(&self, key: &Key, converged: Option<Converged>) {
        self.lock().projects.entry(key.clone()).or_default().converged = converged;
    }

    /// The converged state of a project, and how long its dependency checks stay valid. A project that was converged when
    /// its server or bucket stopped answering is not: nobody may call it ready before they answer again. After a start,
    /// pods of repaired children become ready; that does not make the first check earlier.
    pub(crate) fn converged(&self, key: &Key, within: Duration) -> Option<(Converged, Duration)> {
        let all = self.lock();
        let known = all.projects.get(key)?;
        let left = match &known.checked {
            Some(_) => within.checked_sub(all.valid(known, within)?.at.elapsed())?,
            None => known.due?.checked_duration_since(Instant::now())?,
        };
        Some((known.converged.clone()?, left))
    }

    /// Forgets what was derived from the objects that a pass is about to read again: if it fails half-way, those that it
    /// has read no longer count as changed, and the next pass would take the old values for current.
    pub(crate) fn outdated(&self, key: &Key) {
        if let Some(known) = self.lock().projects.get_mut(key) {
            known.converged = None;
            known.render_inputs = None;
        }
    }

    /// Remembers the inputs of the children.
    pub(crate) fn remember_inputs(&self, key: &Key, reading: [u8; 32], render_inputs: &Arc<RenderInputs>) {
        self.lock().projects.entry(key.clone()).or_default().render_inputs =
            Some((reading, Arc::clone(render_inputs)));
    }

    /// The results for an unchanged spec, while the dependency checks are valid.
    pub(crate) fn resolved(&self, key: &Key, reading: &[u8; 32], within: Duration) -> Option<Resolved> {
        let all = self.lock();
        let known = all.projects.get(key)?;
        let (read_for, render_inputs) = known.render_inputs.as_ref()?;
        let checked = all.valid(known, within)?;
        let database = checked.database.clone()?;
        (read_for == reading).then(|| Resolved {
            render_inputs: Arc::clone(render_inputs),
            postgres: checked.postgres.clone(),
            s3: checked.s3.clone(),
            database,
            left: within.saturating_sub(checked.at.elapsed()),
        })
    }

    /// How long the rollouts have not progressed.
    pub(crate) fn stalled(&self, key: &Key) -> Option<StalledRollout> {
        self.lock().projects.get(key)?.stalled.clone()
    }

    /// Remembers how long the rollouts have not progressed.
    pub(crate) fn set_stalled(&self, key: &Key, stalled: Option<StalledRollout>) {
        self.lock().projects.entry(key.clone()).or_default().stalled = stalled;
    }

    fn lock(&self) -> MutexGuard<'_, All> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests;
