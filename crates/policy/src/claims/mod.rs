//! Records what each policy declares, in every namespace, by the identity that databases report.
//!
//! `observe` searches for conflicting claims, `apply` sets the claim, and then searches once more: of two concurrent policies at
//! least one sees the other. Nothing is compared under the lock. The caller of a changed claim learns which policies to enqueue.
//!
//! | the other policy is | what both declare |
//! |---|---|
//! | in the same namespace, on a server with the same identity | neither is applied |
//! | in another namespace, at the same address, and older | the younger one waits |
//! | in another namespace, at another address | no conflict: any server can claim this identity |
//! | in another namespace, and may not or does not change anything | no conflict: it does not count |

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use stanchion_kernel::watch::dependencies::Key;
use stanchion_postgres::Identity;
use stanchion_roles::expand::{Desired, Size};
use stanchion_roles::plan::Mode;

use crate::overlap::{Declared, overlap};
use crate::policy::target::PolicyId;
use crate::policy::validate::aside;

/// A database: the identity of its server, and its oid there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseKey {
    system: String,
    database: String,
}

impl DatabaseKey {
    /// Parses an identity from a status.
    pub fn parse(text: &str) -> Option<Self> {
        let (system, database) = text.rsplit_once('/')?;
        Some(Self {
            system: system.into(),
            database: database.into(),
        })
    }
}

impl From<&Identity> for DatabaseKey {
    fn from(identity: &Identity) -> Self {
        Self {
            system: identity.system().into(),
            database: identity.database_oid().to_string(),
        }
    }
}

/// The claim of one policy.
#[derive(Clone)]
pub struct Claim {
    /// The policy's uid.
    pub uid: String,
    /// Creation time: the older policy takes precedence.
    pub created: Option<Timestamp>,
    pub place: DatabaseKey,
    /// The server's address; unknown for a claim from before a restart.
    pub peer: Option<String>,
    /// Whether the claim counts in other namespaces: the login may change roles, and the policy applies changes.
    pub counts: bool,
    /// Whether the policy waited for another namespace's policy at its last reconcile.
    pub waited: bool,
    /// The changes that the policy makes: one that revokes nothing is in the way of fewer others.
    pub mode: Mode,
    /// The desired state.
    pub desired: Arc<Desired>,
    /// Whether the desired state lacks shared profiles: those of a claim from before a restart are unknown.
    pub partial: bool,
}

impl Claim {
    fn declared(&self) -> Declared<'_> {
        Declared {
            desired: &self.desired,
            mode: self.mode,
        }
    }
}

/// What another policy declares, which the end of this one leaves alone.
pub struct Spared {
    /// Its desired state.
    pub desired: Arc<Desired>,
    /// Whether it is about the same database.
    pub same_database: bool,
    /// Whether the desired state lacks shared profiles.
    pub partial: bool,
}

struct Held {
    /// Another value after each claim of the policy.
    claim: Arc<Claim>,
    /// Sequence number, which decides between policies that were created in the same second.
    order: usize,
    /// Policies with conflicting claims.
    rivals: BTreeSet<Pair>,
}

/// Whether `other` blocks `us`, given that both declare the same.
fn hinders(other: Party<'_>, us: Party<'_>) -> bool {
    let ((their_name, theirs, their_order), (our_name, ours, our_order)) = (other, us);
    if their_name.0 == our_name.0 {
        return true;
    }
    let older = (theirs.created, theirs.waited, their_order) < (ours.created, ours.waited, our_order);
    let same_server = match (&theirs.peer, &ours.peer) {
        (Some(theirs), Some(ours)) => theirs == ours,
        // The result from before a restart applies until both have claimed again.
        _ => ours.waited,
    };
    older && same_server && theirs.counts
}

type Pair = (String, String);
type Party<'a> = (&'a Pair, &'a Claim, usize);
type Table = HashMap<Pair, Held>;

/// The sequence number of a policy: the one that it has, or the next one.
fn order(all: &Table, us: &Pair) -> usize {
    let next = || all.values().map(|held| held.order + 1).max().unwrap_or_default();
    all.get(us).map_or_else(next, |held| held.order)
}

/// The claims of the other policies.
fn others(all: &Table, us: &Pair) -> Vec<(Pair, Arc<Claim>)> {
    let others = all.iter().filter(|(other, _)| *other != us);
    others
        .map(|(other, held)| (other.clone(), Arc::clone(&held.claim)))
        .collect()
}

/// Those of the other policies that declare the same, sorted by name. Large policies take a while to compare.
fn overlapping(others: &[(Pair, Arc<Claim>)], claim: &Claim) -> Vec<Rival> {
    let on_server = others
        .iter()
        .filter(|(_, held)| held.place.system == claim.place.system);
    let others: Vec<_> = on_server.collect();
    let compared = || {
        let found = others.iter().filter_map(|(other, held)| {
            let same_database = held.place == claim.place;
            let over = overlap(claim.declared(), held.declared(), same_database);
            let who = PolicyId {
                key: key(other),
                uid: held.uid.clone(),
            };
            (!over.is_empty()).then_some(Rival { who, over })
        });
        found.collect()
    };
    let grants = |claim: &Claim| claim.desired.counts.grants;
    let size = Size {
        grants: others.iter().map(|(_, held)| grants(held)).sum::<usize>() + grants(claim),
        ..Size::default()
    };
    let mut found: Vec<_> = aside(size, compared);
    found.sort_by_key(|rival| pair(&rival.who.key));
    found
}

/// Those of them that block `us`.
fn blocking(mut overlapping: Vec<Rival>, all: &Table, us: Party<'_>) -> Vec<Rival> {
    overlapping.retain(|rival| {
        let name = pair(&rival.who.key);
        all.get(&name)
            .is_some_and(|held| hinders((&name, &held.claim, held.order), us))
    });
    overlapping
}

/// Records the result of a comparison; returns the policies whose result has changed. It says nothing about a policy that has
/// claimed since: that one has compared itself with this claim.
fn settle(
    all: &mut Table,
    us: &Pair,
    claim: &Arc<Claim>,
    compared: &[(Pair, Arc<Claim>)],
    found: &BTreeSet<Pair>,
) -> Vec<Key> {
    let is_current = |held: &Held, claim: &Arc<Claim>| Arc::ptr_eq(&held.claim, claim);
    let Some(before) = all.get(us).filter(|held| is_current(held, claim)) else {
        return Vec::new();
    };
    let before = before.rivals.clone();
    let mut now = before.clone();
    for (other, theirs) in compared {
        let Some(held) = all.get_mut(other).filter(|held| is_current(held, theirs)) else {
            continue;
        };
        if found.contains(other) {
            held.rivals.insert(us.clone());
            now.insert(other.clone());
        } else {
            held.rivals.remove(us);
            now.remove(other);
        }
    }
    let affected = before.symmetric_difference(&now).map(key).collect();
    if let Some(held) = all.get_mut(us) {
        held.rivals = now;
    }
    affected
}

/// A policy with a conflicting claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rival {
    /// The other policy.
    pub who: PolicyId,
    /// What both declare.
    pub over: Vec<String>,
}

/// The claims of all policies. Clones share them.
#[derive(Clone, Default)]
pub struct Claims(Arc<Mutex<Table>>);

fn pair(key: &Key) -> Pair {
    (key.namespace.clone(), key.name.clone())
}

fn key(pair: &Pair) -> Key {
    Key {
        namespace: pair.0.clone(),
        name: pair.1.clone(),
    }
}

impl Claims {
    /// The policies that would block this one with such a claim. Changes nothing.
    pub(crate) fn rivals(&self, policy: &Key, claim: &Claim) -> Vec<Rival> {
        let us = pair(policy);
        let (others, order) = {
            let all = self.lock();
            (others(&all, &us), order(&all, &us))
        };
        let found = overlapping(&others, claim);
        blocking(found, &self.lock(), (&us, claim, order))
    }

    /// Sets a claim; returns the conflicting policies, and those whose result has changed.
    pub fn claim(&self, policy: &Key, claim: Claim) -> (Vec<Rival>, Vec<Key>) {
        let (us, claim) = (pair(policy), Arc::new(claim));
        let (others, order) = self.insert(&us, &claim);
        let found = overlapping(&others, &claim);
        let now: BTreeSet<_> = found.iter().map(|rival| pair(&rival.who.key)).collect();
        let mut all = self.lock();
        let affected = settle(&mut all, &us, &claim, &others, &now);
        (blocking(found, &all, (&us, &claim, order)), affected)
    }

    /// Sets a claim that is not compared yet; returns what it is compared with. Of two concurrent policies, the later one finds
    /// the claim of the other.
    fn insert(&self, us: &Pair, claim: &Arc<Claim>) -> (Vec<(Pair, Arc<Claim>)>, usize) {
        let mut all = self.lock();
        let (others, order) = (others(&all, us), order(&all, us));
        let held = all.entry(us.clone()).or_insert_with(|| Held {
            claim: Arc::clone(claim),
            order,
            rivals: BTreeSet::new(),
        });
        held.claim = Arc::clone(claim);
        (others, order)
    }

    /// Removes a claim; returns the policies whose result has changed.
    pub fn release(&self, policy: &Key) -> Vec<Key> {
        let mut all = self.lock();
        let us = pair(policy);
        let Some(held) = all.remove(&us) else {
            return Vec::new();
        };
        for rival in &held.rivals {
            if let Some(other) = all.get_mut(rival) {
                other.rivals.remove(&us);
            }
        }
        held.rivals.iter().map(key).collect()
    }

    /// Restores a claim from before a restart, unless the policy has claimed since.
    pub(crate) fn remember(&self, policy: &Key, claim: Claim) {
        if !self.lock().contains_key(&pair(policy)) {
            self.claim(policy, claim);
        }
    }

    /// Whether another policy blocks this one.
    pub(crate) fn is_contested(&self, policy: &Key) -> bool {
        let (all, us) = (self.lock(), pair(policy));
        all.get(&us).is_some_and(|ours| {
            ours.rivals.iter().any(|name| {
                all.get(name).is_some_and(|held| {
                    hinders((name, &held.claim, held.order), (&us, &ours.claim, ours.order))
                })
            })
        })
    }

    /// The relevant claims of all others on this server: from other namespaces only those at the same address, or from before a
    /// restart.
    pub fn others(&self, policy: &Key, place: &DatabaseKey, peer: &str) -> Vec<Spared> {
        let us = pair(policy);
        let counts = |other: &Pair, claim: &Claim| {
            let same_server = claim.peer.as_deref().is_none_or(|theirs| theirs == peer);
            other.0 == us.0 || (claim.counts && same_server)
        };
        self.lock()
            .iter()
            .filter(|(other, held)| {
                **other != us && held.claim.place.system == place.system && counts(other, &held.claim)
            })
            .map(|(_, held)| Spared {
                desired: Arc::clone(&held.claim.desired),
                same_database: held.claim.place == *place,
                partial: held.claim.partial,
            })
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock()
    }
}
