//! The state outside of the cluster, and the observations of passes for tests.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use stanchion_kernel::Inactive;
use stanchion_kernel::problem::{Class, Problem};
use stanchion_kernel::watch::dependencies::Key;
use tokio::sync::{Notify, watch};

/// The thing that a widget represents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thing {
    /// As its widget asks for it.
    pub size: u32,
    /// From its widget's Secret.
    pub password: Option<String>,
}

/// Called with the name of every thing that is about to be created, changed or removed.
type Witness = Arc<dyn Fn(&str) + Send + Sync>;

/// Called when a pass leaves `observe`, however it ends.
type Leaving = Arc<dyn Fn() + Send + Sync>;

/// The state outside of the cluster, shared by successive operators.
#[derive(Clone, Default)]
pub struct World {
    shared: Arc<Shared>,
    witness: Option<Witness>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Names whose passes wait in `observe`.
    held: watch::Sender<Vec<String>>,
    /// A signal was sent.
    signalled: Notify,
}

#[derive(Default)]
struct State {
    things: BTreeMap<String, Thing>,
    changes: usize,
    outages: HashMap<String, Class>,
    stuck: HashSet<String>,
    blocked: HashMap<String, Class>,
    withdrawn: HashSet<String>,
    inactive: Vec<(String, &'static str)>,
    signals: VecDeque<Vec<Key>>,
    passes: HashMap<String, usize>,
    running: HashMap<String, usize>,
    most_running: usize,
    overlaps: usize,
    leaving: HashMap<String, Leaving>,
    with_managed_fields: usize,
}

impl World {
    /// The same world, where `witness` is called for every change through this handle.
    #[must_use]
    pub fn witnessed(&self, witness: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            witness: Some(Arc::new(witness)),
        }
    }

    /// The thing of this widget.
    pub fn thing(&self, name: &str) -> Option<Thing> {
        self.state().things.get(name).cloned()
    }

    /// All things.
    pub fn things(&self) -> BTreeMap<String, Thing> {
        self.state().things.clone()
    }

    /// Number of creations, changes and removals.
    pub fn changes(&self) -> usize {
        self.state().changes
    }

    /// Creates, changes or removes the thing of this widget.
    pub(crate) fn put(&self, name: &str, thing: Option<Thing>) {
        if let Some(witness) = &self.witness {
            witness(name);
        }
        let mut state = self.state();
        state.changes += 1;
        match thing {
            Some(thing) => state.things.insert(name.into(), thing),
            None => state.things.remove(name),
        };
    }

    /// From now on the world fails for this widget with this class; `None` ends it.
    pub fn fails(&self, name: &str, class: Option<Class>) {
        let outages = &mut self.state().outages;
        match class {
            Some(class) => outages.insert(name.into(), class),
            None => outages.remove(name),
        };
    }

    /// From now on the thing of this widget cannot be removed, and the world says that it never will; or it can again.
    pub fn sticks(&self, name: &str, stuck: bool) {
        let things = &mut self.state().stuck;
        if stuck {
            things.insert(name.into());
        } else {
            things.remove(name);
        }
    }

    pub(crate) fn check_removal(&self, name: &str) -> Result<(), Problem> {
        if self.state().stuck.contains(name) {
            return Err(Problem::permanent(
                "Stuck",
                format!("the world does not let go of {name}"),
            ));
        }
        Ok(())
    }

    /// From now on this widget is blocked after its changes are made, by a problem of this class; `None` ends it.
    pub fn blocks(&self, name: &str, class: Option<Class>) {
        let blocked = &mut self.state().blocked;
        match class {
            Some(class) => blocked.insert(name.into(), class),
            None => blocked.remove(name),
        };
    }

    pub(crate) fn blocker(&self, name: &str) -> Option<Problem> {
        let class = *self.state().blocked.get(name)?;
        Some(Problem::new(
            class,
            "Blocked",
            format!("{name} waits for the world"),
        ))
    }

    /// From now on an inactive widget of this name has a problem.
    pub fn withdraw(&self, name: &str) {
        self.state().withdrawn.insert(name.into());
    }

    /// The widgets that `inactive` was called with instead of the steps, and why.
    pub fn inactive_passes(&self) -> Vec<(String, &'static str)> {
        self.state().inactive.clone()
    }

    pub(crate) fn inactive(&self, name: &str, why: Inactive<'_>) -> Result<(), Problem> {
        let mut state = self.state();
        let why = match why {
            Inactive::Suspended => "Suspended",
            Inactive::Invalid(problem) => problem.reason,
        };
        state.inactive.push((name.into(), why));
        if state.withdrawn.contains(name) {
            return Err(Problem::human("Withdrawn", format!("the world withdrew {name}")));
        }
        Ok(())
    }

    pub(crate) fn check(&self, name: &str) -> Result<(), Problem> {
        match self.state().outages.get(name) {
            Some(class) => Err(Problem::new(*class, "Outage", format!("the world fails {name}"))),
            None => Ok(()),
        }
    }

    /// An event outside of the cluster that wakes these widgets. Without any, the toy panics over it.
    pub fn signal(&self, keys: Vec<Key>) {
        self.state().signals.push_back(keys);
        self.shared.signalled.notify_one();
    }

    pub(crate) async fn next_signal(&self) -> Vec<Key> {
        loop {
            let signal = self.state().signals.pop_front();
            if let Some(keys) = signal {
                assert!(!keys.is_empty(), "boom in external_events");
                return keys;
            }
            self.shared.signalled.notified().await;
        }
    }

    /// Makes passes over this widget wait at the end of `observe`, after everything was read.
    pub fn hold(&self, name: &str) {
        self.shared.held.send_modify(|held| held.push(name.into()));
    }

    /// Releases the waiting passes.
    pub fn release(&self, name: &str) {
        self.shared
            .held
            .send_modify(|held| held.retain(|entry| entry != name));
    }

    pub(crate) async fn pause(&self, name: &str) {
        let is_free = |held: &Vec<String>| !held.iter().any(|entry| entry == name);
        let _ = self.shared.held.subscribe().wait_for(is_free).await;
    }

    /// Calls this when a pass over this widget leaves `observe`, also if it is dropped there.
    pub fn when_left(&self, name: &str, call: impl Fn() + Send + Sync + 'static) {
        self.state().leaving.insert(name.into(), Arc::new(call));
    }

    /// Number of passes that have reached `observe` so far.
    pub fn passes(&self, name: &str) -> usize {
        self.state().passes.get(name).copied().unwrap_or_default()
    }

    /// Number of passes over this widget that are in `observe` or `apply`.
    pub fn running(&self, name: &str) -> usize {
        self.state().running.get(name).copied().unwrap_or_default()
    }

    /// The maximum number of concurrent passes, and how often one object had two at once.
    pub fn concurrency(&self) -> (usize, usize) {
        let state = self.state();
        (state.most_running, state.overlaps)
    }

    pub(crate) fn enter(&self, name: &str) -> Inside {
        let mut state = self.state();
        *state.passes.entry(name.into()).or_default() += 1;
        let running = state.running.entry(name.into()).or_default();
        *running += 1;
        let overlaps = *running > 1;
        state.overlaps += usize::from(overlaps);
        let together = state.running.values().sum();
        state.most_running = state.most_running.max(together);
        drop(state);
        Inside {
            world: self.clone(),
            name: name.into(),
        }
    }

    /// Number of passes that got an object with managedFields.
    pub fn with_managed_fields(&self) -> usize {
        self.state().with_managed_fields
    }

    pub(crate) fn saw_managed_fields(&self) {
        self.state().with_managed_fields += 1;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap()
    }
}

/// A pass between its first read and the end of `observe`, however it ends.
pub(crate) struct Inside {
    world: World,
    name: String,
}

impl Drop for Inside {
    fn drop(&mut self) {
        if let Some(running) = self.world.state().running.get_mut(&self.name) {
            *running -= 1;
        }
        let leaving = self.world.state().leaving.get(&self.name).cloned();
        if let Some(leaving) = leaving {
            leaving();
        }
    }
}
