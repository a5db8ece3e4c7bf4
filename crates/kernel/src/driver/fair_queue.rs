//! The order in which objects get their passes.
//!
//! Namespaces take turns, and within a namespace so do lanes. One namespace has at most half of the workers, however
//! many objects it has and however long their passes take; one lane has at most half of these. So a tenant with sixty
//! objects on a server that never answers does not delay other tenants, and lanes protect the tenant's other objects.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};

use crate::watch::dependencies::Key;

/// Maximum numbers of concurrent passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    /// In total.
    pub(super) places: usize,
    /// For one namespace.
    pub(super) of_namespace: usize,
    /// For one lane of a namespace.
    pub(super) of_lane: usize,
}

impl Limits {
    /// The limits for a total number.
    pub(super) fn of(places: u16) -> Self {
        let half = |whole: usize| whole.div_ceil(2);
        let places = usize::from(places).max(1);
        Self {
            places,
            of_namespace: half(places),
            of_lane: half(half(places)),
        }
    }
}

/// The group within a namespace that an object shares a limit with; `None` for no group.
pub(super) type Lane = Option<String>;

/// The waiting and the running objects. `W` is a value for each waiting object.
pub(super) struct FairQueue<W> {
    limits: Limits,
    waiting: HashMap<Key, W>,
    running: HashMap<Key, Turn>,
    namespaces: HashMap<String, Namespace>,
    /// The namespaces with waiting objects, the next one first.
    order: VecDeque<String>,
}

struct Turn {
    lane: Lane,
    /// It was enqueued again while it ran.
    again: bool,
}

#[derive(Default)]
struct Namespace {
    running: usize,
    lanes: HashMap<Lane, Members>,
    /// The lanes with waiting objects, the next one first.
    order: VecDeque<Lane>,
}

#[derive(Default)]
struct Members {
    running: usize,
    /// In the order of arrival. A key that is no longer in `FairQueue::waiting` has left.
    waiting: VecDeque<Key>,
}

impl<W> FairQueue<W> {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            waiting: HashMap::new(),
            running: HashMap::new(),
            namespaces: HashMap::new(),
            order: VecDeque::new(),
        }
    }

    /// Enqueues an object. A waiting object stays in the queue once; a running one is enqueued again after its pass.
    pub(super) fn join(&mut self, key: Key, lane: Lane, wait: impl FnOnce() -> W) {
        if let Some(turn) = self.running.get_mut(&key) {
            turn.again = true;
        }
        let Entry::Vacant(vacant) = self.waiting.entry(key.clone()) else {
            return;
        };
        vacant.insert(wait());
        if !self.running.contains_key(&key) {
            self.place(key, lane);
        }
    }

    fn place(&mut self, key: Key, lane: Lane) {
        let name = key.namespace.clone();
        let namespace = self.namespaces.entry(name.clone()).or_default();
        if namespace.order.is_empty() {
            self.order.push_back(name);
        }
        let members = namespace.lanes.entry(lane.clone()).or_default();
        if members.waiting.is_empty() {
            namespace.order.push_back(lane);
        }
        members.waiting.push_back(key);
    }

    /// The next object, if a worker is free for it.
    pub(super) fn take(&mut self) -> Option<(Key, W)> {
        if self.running.len() >= self.limits.places {
            return None;
        }
        for _ in 0..self.order.len() {
            let name = self.order.pop_front()?;
            let Some(namespace) = self.namespaces.get_mut(&name) else {
                continue;
            };
            let taken = namespace.take(self.limits, &mut self.waiting);
            if !namespace.order.is_empty() {
                self.order.push_back(name);
            }
            if let Some((key, lane, wait)) = taken {
                self.running.insert(key.clone(), Turn { lane, again: false });
                return Some((key, wait));
            }
        }
        None
    }

    /// A pass has ended. `lane` is the object's lane if it was enqueued again.
    pub(super) fn finish(&mut self, key: &Key, lane: impl FnOnce() -> Lane) {
        let Some(turn) = self.running.remove(key) else {
            return;
        };
        if let Some(namespace) = self.namespaces.get_mut(&key.namespace) {
            namespace.running = namespace.running.saturating_sub(1);
            if let Some(members) = namespace.lanes.get_mut(&turn.lane) {
                members.running = members.running.saturating_sub(1);
                if members.running == 0 && members.waiting.is_empty() {
                    namespace.lanes.remove(&turn.lane);
                }
            }
        }
        if turn.again && self.waiting.contains_key(key) {
            self.place(key.clone(), lane());
        }
        self.tidy(&key.namespace);
    }

    /// Removes an object from the queue.
    pub(super) fn leave(&mut self, key: &Key) -> Option<W> {
        self.waiting.remove(key)
    }

    fn tidy(&mut self, name: &str) {
        let is_idle = |namespace: &Namespace| {
            namespace.running == 0 && namespace.order.is_empty() && namespace.lanes.is_empty()
        };
        if self.namespaces.get(name).is_some_and(is_idle) {
            self.namespaces.remove(name);
        }
    }
}

impl Namespace {
    fn take<W>(&mut self, limits: Limits, waiting: &mut HashMap<Key, W>) -> Option<(Key, Lane, W)> {
        if self.running >= limits.of_namespace {
            return None;
        }
        for _ in 0..self.order.len() {
            let lane = self.order.pop_front()?;
            let Some(members) = self.lanes.get_mut(&lane) else {
                continue;
            };
            let is_full = lane.is_some() && members.running >= limits.of_lane;
            let taken = if is_full { None } else { members.take(waiting) };
            let (is_empty, is_idle) = (members.waiting.is_empty(), members.running == 0);
            if !is_empty {
                self.order.push_back(lane.clone());
            } else if is_idle && taken.is_none() {
                self.lanes.remove(&lane);
            }
            if let Some((key, wait)) = taken {
                self.running += 1;
                return Some((key, lane, wait));
            }
        }
        None
    }
}

impl Members {
    fn take<W>(&mut self, waiting: &mut HashMap<Key, W>) -> Option<(Key, W)> {
        while let Some(key) = self.waiting.pop_front() {
            if let Some(wait) = waiting.remove(&key) {
                self.running += 1;
                return Some((key, wait));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(namespace: &str, name: &str) -> Key {
        Key {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    fn line(places: u16) -> FairQueue<()> {
        FairQueue::new(Limits::of(places))
    }

    fn join(line: &mut FairQueue<()>, namespace: &str, name: &str, server: Option<&str>) {
        line.join(key(namespace, name), server.map(Into::into), || ());
    }

    fn taken(line: &mut FairQueue<()>) -> Vec<String> {
        std::iter::from_fn(|| line.take())
            .map(|(key, ())| format!("{}/{}", key.namespace, key.name))
            .collect()
    }

    #[test]
    fn one_namespace_has_at_most_half_of_the_places() {
        let mut line = line(8);
        for number in 0..60 {
            join(&mut line, "evil", &format!("e{number}"), None);
        }
        assert_eq!(taken(&mut line).len(), 4);
        join(&mut line, "bank", "one", None);
        assert_eq!(taken(&mut line), ["bank/one"], "and it does not wait behind them");
        line.finish(&key("evil", "e0"), || None);
        assert_eq!(taken(&mut line), ["evil/e4"]);
    }

    #[test]
    fn namespaces_take_turns_and_within_them_who_came_first_goes_first() {
        let mut line = line(2);
        for name in ["a", "b", "c"] {
            join(&mut line, "one", name, None);
        }
        join(&mut line, "two", "d", None);
        assert_eq!(taken(&mut line), ["one/a", "two/d"]);
        line.finish(&key("two", "d"), || None);
        assert!(taken(&mut line).is_empty(), "a namespace has one of two places");
        line.finish(&key("one", "a"), || None);
        assert_eq!(taken(&mut line), ["one/b"]);
    }

    #[test]
    fn a_dead_lane_leaves_room_for_the_others_of_its_namespace() {
        let mut line = line(16);
        for number in 0..20 {
            join(&mut line, "shop", &format!("dead{number}"), Some("dead-server"));
        }
        assert_eq!(taken(&mut line).len(), 4);
        for name in ["well", "alone"] {
            join(&mut line, "shop", name, (name == "well").then_some("server"));
        }
        assert_eq!(taken(&mut line), ["shop/well", "shop/alone"]);
    }

    #[test]
    fn an_object_waits_once_and_never_runs_twice_at_once() {
        let mut line = line(8);
        for _ in 0..3 {
            join(&mut line, "shop", "one", None);
        }
        assert_eq!(taken(&mut line), ["shop/one"]);
        for _ in 0..3 {
            join(&mut line, "shop", "one", None);
        }
        assert!(taken(&mut line).is_empty(), "it runs");
        line.finish(&key("shop", "one"), || None);
        assert_eq!(taken(&mut line), ["shop/one"]);
        line.finish(&key("shop", "one"), || None);
        assert!(taken(&mut line).is_empty());
        assert!(line.namespaces.is_empty() && line.order.is_empty() && line.running.is_empty());
    }

    #[test]
    fn a_removed_object_has_no_turn_and_leaves_nothing_behind() {
        let mut line = line(8);
        for name in ["one", "two"] {
            join(&mut line, "shop", name, Some("lane"));
        }
        assert!(line.leave(&key("shop", "one")).is_some());
        assert_eq!(taken(&mut line), ["shop/two"]);
        join(&mut line, "shop", "two", Some("lane"));
        line.leave(&key("shop", "two"));
        line.finish(&key("shop", "two"), || None);
        assert!(taken(&mut line).is_empty());
        assert!(line.namespaces.is_empty() && line.waiting.is_empty());
    }

    #[test]
    fn one_worker_serves_every_namespace() {
        assert_eq!(
            Limits::of(1),
            Limits {
                places: 1,
                of_namespace: 1,
                of_lane: 1
            }
        );
    }
}
