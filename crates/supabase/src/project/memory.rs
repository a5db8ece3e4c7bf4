//! What is remembered between two passes over a project, so that a rollout does not cost a connection each time a pod
//! becomes ready. Nothing here is needed after a restart.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use stanchion_kernel::watch::references::Key;

use super::contact::{Contact, Initialised};
use super::patience::Standstill;
use super::standing::Standing;

/// How often the database and the bucket are asked although nothing has changed.
const CHECK_EVERY: Duration = Duration::from_secs(30);
/// What each project adds to that, once they are many: two a second are asked, and not more.
const FOR_EACH: Duration = Duration::from_millis(500);
/// How long after a start the dependencies are asked, of one project and of each further one: children come first.
const MENDED_BY: Duration = Duration::from_secs(1);
const AFTER_EACH: Duration = Duration::from_millis(20);
/// Whoever was not asked for so many times that long is gone.
const FORGOTTEN: u32 = 5;

/// How the dependencies answered.
#[derive(Clone)]
pub struct Checked {
    /// What they were asked with.
    pub inputs: [u8; 32],
    /// The database's server, as `host:port`.
    pub server: String,
    /// When.
    pub at: Instant,
    /// Another project has lost this server since.
    pub doubted: bool,
    /// The database's answer.
    pub postgres: Contact,
    /// The bucket's answer.
    pub s3: Contact,
    /// Whether the database has everything.
    pub database: Option<Initialised>,
}

impl Checked {
    /// Whether this may be believed without asking again, as long as what they were asked with is the same.
    pub fn holds(&self, within: Duration) -> bool {
        let fine = self.postgres.answered() && self.s3.answered() && self.database.is_some();
        fine && !self.doubted && self.at.elapsed() < within
    }
}

/// A project that was brought in order, and what it was brought in order by. While nothing of this changes there is
/// nothing to read and nothing to do, however often its pods come and go.
#[derive(Clone, PartialEq)]
pub struct Settled {
    /// The generation of the spec.
    pub generation: Option<i64>,
    /// The request for new keys.
    pub rotate: Option<String>,
    /// The Secrets that were read.
    pub secrets: Vec<String>,
    /// The `ConfigMaps` that were read.
    pub config_maps: BTreeSet<String>,
    /// The children, as they were left.
    pub children: [u8; 32],
}

/// What was found out for a spec, and how the dependencies have answered.
pub struct Resolved {
    /// What the children are made from.
    pub standing: Arc<Standing>,
    /// The database's answer.
    pub postgres: Contact,
    /// The bucket's answer.
    pub s3: Contact,
    /// The database has everything.
    pub database: Initialised,
    /// For how much longer the dependencies need not be asked.
    pub left: Duration,
}

#[derive(Default)]
struct Known {
    checked: Option<Checked>,
    settled: Option<Settled>,
    /// What the children are made from, and the digest of what that was read for.
    standing: Option<([u8; 32], Arc<Standing>)>,
    standstill: Option<Standstill>,
    /// When this process looked at it first.
    looked: Option<Instant>,
}

/// What is known of each project.
#[derive(Default)]
pub struct Memory(Mutex<HashMap<Key, Known>>);

/// How long answers are believed, among so many projects.
fn check_every(projects: usize) -> Duration {
    let projects = u32::try_from(projects).unwrap_or(u32::MAX);
    CHECK_EVERY.max(FOR_EACH.saturating_mul(projects))
}

impl Memory {
    /// How long answers are believed while nothing seems to be wrong.
    pub fn check_every(&self) -> Duration {
        check_every(self.lock().len())
    }

    /// The last answers.
    pub fn checked(&self, key: &Key) -> Option<Checked> {
        self.lock().get(key)?.checked.clone()
    }

    /// Remembers answers, and forgets those of projects that nobody has looked at for long: they are gone.
    pub fn check(&self, key: &Key, checked: Checked) {
        let mut all = self.lock();
        let remembered = check_every(all.len()) * FORGOTTEN;
        let fresh = |known: &Known| {
            let checked = known.checked.as_ref().map(|checked| checked.at);
            let last = checked.or(known.looked);
            last.is_some_and(|at| at.elapsed() < remembered)
        };
        all.retain(|_, known| fresh(known));
        all.entry(key.clone()).or_default().checked = Some(checked);
    }

    /// For the first look of this process at a project: how long its dependencies have to wait for their turn, because
    /// others may have children that are to be mended. `None` for every later one.
    pub fn first_look(&self, key: &Key) -> Option<Duration> {
        let mut all = self.lock();
        let waiting = all.values().filter(|known| known.checked.is_none()).count();
        let known = all.entry(key.clone()).or_default();
        if known.checked.is_some() || known.looked.is_some() {
            return None;
        }
        known.looked = Some(Instant::now());
        let waiting = u32::try_from(waiting).unwrap_or(u32::MAX);
        Some(MENDED_BY + AFTER_EACH.saturating_mul(waiting))
    }

    /// A server was lost: whose last answer from it is no longer to be believed. Each is named once.
    pub fn doubt(&self, server: &str) -> Vec<Key> {
        let mut all = self.lock();
        let believers = all.iter_mut().filter_map(|(key, known)| {
            let checked = known.checked.as_mut()?;
            let believed = checked.server == server && checked.postgres.answered() && !checked.doubted;
            checked.doubted |= believed;
            believed.then(|| key.clone())
        });
        believers.collect()
    }

    /// Remembers that the database has everything now.
    pub fn initialised(&self, key: &Key, database: Initialised) {
        if let Some(checked) = self.lock().get_mut(key).and_then(|known| known.checked.as_mut()) {
            checked.database = Some(database);
        }
    }

    /// Remembers that a project is in order.
    pub fn settle(&self, key: &Key, settled: Option<Settled>) {
        self.lock().entry(key.clone()).or_default().settled = settled;
    }

    /// How a project was left, and for how much longer its dependencies need not be asked.
    pub fn settled(&self, key: &Key, within: Duration) -> Option<(Settled, Duration)> {
        let all = self.lock();
        let known = all.get(key)?;
        let checked = known.checked.as_ref().filter(|checked| !checked.doubted)?;
        let left = within.checked_sub(checked.at.elapsed())?;
        Some((known.settled.clone()?, left))
    }

    /// Remembers what the children are made from.
    pub fn stand(&self, key: &Key, reading: [u8; 32], standing: &Arc<Standing>) {
        self.lock().entry(key.clone()).or_default().standing = Some((reading, Arc::clone(standing)));
    }

    /// What was found out for a spec that reads the same, while the dependencies need not be asked.
    pub fn resolved(&self, key: &Key, reading: &[u8; 32], within: Duration) -> Option<Resolved> {
        let all = self.lock();
        let known = all.get(key)?;
        let (read_for, standing) = known.standing.as_ref()?;
        let checked = known.checked.as_ref().filter(|checked| checked.holds(within))?;
        let database = checked.database.clone()?;
        (read_for == reading).then(|| Resolved {
            standing: Arc::clone(standing),
            postgres: checked.postgres.clone(),
            s3: checked.s3.clone(),
            database,
            left: within.saturating_sub(checked.at.elapsed()),
        })
    }

    /// How long the rollouts have not moved, and what of that is to be remembered.
    pub fn standstill<T>(&self, key: &Key, change: impl FnOnce(&mut Option<Standstill>) -> T) -> T {
        change(&mut self.lock().entry(key.clone()).or_default().standstill)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::{Names, Proof};

    #[test]
    fn what_one_has_lost_nobody_believes_in() {
        let memory = Memory::default();
        let key = |name: &str| Key {
            namespace: "ns".into(),
            name: name.into(),
        };
        for (name, server) in [("a", "one:5432"), ("b", "one:5432"), ("c", "two:5432")] {
            let checked = Checked {
                inputs: [0; 32],
                server: server.to_owned(),
                doubted: false,
                at: Instant::now(),
                postgres: Contact::Answered(Duration::ZERO),
                s3: Contact::Answered(Duration::ZERO),
                database: Some(Initialised {
                    names: Names::default(),
                    notes: Vec::new(),
                    proof: Proof::default(),
                }),
            };
            memory.check(&key(name), checked);
        }
        let mut woken = memory.doubt("one:5432");
        woken.sort_by(|one, other| one.name.cmp(&other.name));
        assert_eq!(woken, [key("a"), key("b")]);
        assert_eq!(memory.doubt("one:5432"), [], "each is woken once");
        let believed = |name: &str| memory.checked(&key(name)).unwrap().holds(CHECK_EVERY);
        assert_eq!(["a", "b", "c"].map(believed), [false, false, true]);
    }

    #[test]
    fn only_the_first_look_asks_nobody() {
        let memory = Memory::default();
        let key = |name: &str| Key {
            namespace: "ns".into(),
            name: name.into(),
        };
        assert_eq!(memory.first_look(&key("a")), Some(MENDED_BY));
        assert_eq!(memory.first_look(&key("b")), Some(MENDED_BY + AFTER_EACH));
        assert_eq!(memory.first_look(&key("a")), None);
    }

    #[test]
    fn many_projects_are_asked_less_often_each() {
        for (projects, every) in [
            (0, 30),
            (1, 30),
            (60, 30),
            (240, 120),
            (1_000, 500),
            (5_000, 2_500),
        ] {
            assert_eq!(check_every(projects), Duration::from_secs(every), "{projects}");
        }
        assert!(check_every(usize::MAX) > Duration::from_hours(1));
    }
}
