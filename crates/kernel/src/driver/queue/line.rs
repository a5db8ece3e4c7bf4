//! The order in which objects get their passes.
//!
//! Namespaces take turns, and within a namespace so do lanes. One namespace has at most half of the workers, however
//! many objects it has and however long their passes take; one lane has at most half of these. So a tenant with sixty
//! objects on a server that never answers does not delay other tenants, and lanes protect the tenant's other objects.
//!
//! A lane counts within its namespace only. Its name is that of a reference, such as a Secret: the same name means
//! another server in another namespace, and a limit across namespaces would let tenants delay each other by name.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};

use crate::watch::dependencies::Key;

/// Maximum numbers of concurrent passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::driver) struct Limits {
    /// In total.
    places: usize,
    /// For one namespace.
    of_namespace: usize,
    /// For one lane of a namespace.
    of_lane: usize,
}

impl Limits {
    /// The limits for a total number.
    pub(in crate::driver) fn of(places: u16) -> Self {
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
pub(in crate::driver) type Lane = Option<String>;

/// The waiting and the running objects. `W` is a value for each waiting object.
///
/// An object that waits has a ticket, and its place in a lane has the same one. A place with another ticket is void: the
/// object has left it for another lane.
pub(super) struct FairQueue<W> {
    limits: Limits,
    tickets: Ticket,
    waiting: HashMap<Key, Waiting<W>>,
    /// With the lane whose worker each of them has.
    running: HashMap<Key, Lane>,
    namespaces: HashMap<String, Namespace>,
    /// The namespaces with waiting objects, the next one first.
    order: VecDeque<String>,
}

/// The number of a placement.
type Ticket = u64;

struct Waiting<W> {
    /// The lane that it waits in.
    lane: Lane,
    /// `None` while its pass runs: it gets its place when that ends.
    ticket: Option<Ticket>,
    value: W,
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
    /// In the order of arrival.
    waiting: VecDeque<(Key, Ticket)>,
}

impl<W> FairQueue<W> {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            tickets: 0,
            waiting: HashMap::new(),
            running: HashMap::new(),
            namespaces: HashMap::new(),
            order: VecDeque::new(),
        }
    }

    /// Enqueues an object. A waiting object stays in the queue once; a running one is enqueued again after its pass.
    ///
    /// A waiting object changes its lane: after a start, children enqueue their owners before these are listed, when their
    /// lanes are not known yet. If they all stayed in one lane, each later event of another object would overtake them.
    pub(super) fn join(&mut self, key: Key, lane: Lane, wait: impl FnOnce() -> W) {
        match self.waiting.entry(key.clone()) {
            Entry::Occupied(waiting) if waiting.get().lane == lane => return,
            Entry::Occupied(mut waiting) => waiting.get_mut().lane = lane,
            Entry::Vacant(vacant) => {
                vacant.insert(Waiting {
                    lane,
                    ticket: None,
                    value: wait(),
                });
            }
        }
        if !self.running.contains_key(&key) {
            self.place(key);
        }
    }

    /// Gives a waiting object a place in its lane; one that it had before is void.
    fn place(&mut self, key: Key) {
        let Some(waiting) = self.waiting.get_mut(&key) else {
            return;
        };
        self.tickets += 1;
        waiting.ticket = Some(self.tickets);
        let (name, lane) = (key.namespace.clone(), waiting.lane.clone());
        let namespace = self.namespaces.entry(name.clone()).or_default();
        if namespace.order.is_empty() {
            self.order.push_back(name);
        }
        let members = namespace.lanes.entry(lane.clone()).or_default();
        if members.waiting.is_empty() {
            namespace.order.push_back(lane);
        }
        members.waiting.push_back((key, self.tickets));
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
            if namespace.order.is_empty() {
                self.tidy(&name);
            } else {
                self.order.push_back(name);
            }
            if let Some((key, lane, wait)) = taken {
                self.running.insert(key.clone(), lane);
                return Some((key, wait));
            }
        }
        None
    }

    /// A pass has ended. `lane` is the object's lane if it was enqueued again.
    pub(super) fn finish(&mut self, key: &Key, lane: impl FnOnce() -> Lane) {
        let Some(before) = self.running.remove(key) else {
            return;
        };
        if let Some(namespace) = self.namespaces.get_mut(&key.namespace) {
            namespace.running = namespace.running.saturating_sub(1);
            if let Some(members) = namespace.lanes.get_mut(&before) {
                members.running = members.running.saturating_sub(1);
                if members.running == 0 && members.waiting.is_empty() {
                    namespace.lanes.remove(&before);
                }
            }
        }
        if let Some(waiting) = self.waiting.get_mut(key) {
            waiting.lane = lane();
            self.place(key.clone());
        }
        self.tidy(&key.namespace);
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
    fn take<W>(&mut self, limits: Limits, waiting: &mut HashMap<Key, Waiting<W>>) -> Option<(Key, Lane, W)> {
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
    fn take<W>(&mut self, waiting: &mut HashMap<Key, Waiting<W>>) -> Option<(Key, W)> {
        while let Some((key, ticket)) = self.waiting.pop_front() {
            if let Entry::Occupied(found) = waiting.entry(key)
                && found.get().ticket == Some(ticket)
            {
                let (key, found) = found.remove_entry();
                self.running += 1;
                return Some((key, found.value));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
