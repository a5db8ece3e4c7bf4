//! Records what each policy declares, in every namespace, by the identity that databases report.
//!
//! `observe` searches for conflicting claims, `apply` sets the claim. Setting it searches once more, under the same lock:
//! of two concurrent policies at least one sees the other. The caller of a changed claim learns which policies to enqueue.
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
use stanchion_roles::expand::Desired;
use stanchion_roles::plan::Mode;

use crate::overlap::{Declared, overlap};
use crate::policy::target::PolicyId;

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
}

struct Held {
    claim: Claim,
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

/// The other policies that declare the same, sorted by name.
fn overlapping(all: &Table, us: &Pair, claim: &Claim) -> Vec<Rival> {
    let others = all
        .iter()
        .filter(|(other, held)| *other != us && held.claim.place.system == claim.place.system);
    let mut found: Vec<_> = others
        .filter_map(|(other, held)| {
            let same_database = held.claim.place == claim.place;
            let over = overlap(claim.declared(), held.claim.declared(), same_database);
            let who = PolicyId {
                key: key(other),
                uid: held.claim.uid.clone(),
            };
            (!over.is_empty()).then_some(Rival { who, over })
        })
        .collect();
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
        let (all, us) = (self.lock(), pair(policy));
        let order = order(&all, &us);
        blocking(overlapping(&all, &us, claim), &all, (&us, claim, order))
    }

    /// Sets a claim; returns the conflicting policies, and those whose result has changed.
    pub fn claim(&self, policy: &Key, claim: Claim) -> (Vec<Rival>, Vec<Key>) {
        let mut all = self.lock();
        let us = pair(policy);
        let order = order(&all, &us);
        let overlapping = overlapping(&all, &us, &claim);
        let now: BTreeSet<_> = overlapping.iter().map(|rival| pair(&rival.who.key)).collect();
        let before = all.remove(&us).map(|held| held.rivals).unwrap_or_default();
        for (other, held) in all.iter_mut() {
            if now.contains(other) {
                held.rivals.insert(us.clone());
            } else {
                held.rivals.remove(&us);
            }
        }
        let rivals = blocking(overlapping, &all, (&us, &claim, order));
        let affected = before.symmetric_difference(&now).map(key).collect();
        let held = Held {
            claim,
            order,
            rivals: now,
        };
        all.insert(us, held);
        (rivals, affected)
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

    /// The relevant claims of all others on this server: from other namespaces only those at the same address.
    pub fn others(&self, policy: &Key, place: &DatabaseKey, peer: &str) -> Vec<Spared> {
        let us = pair(policy);
        let counts = |other: &Pair, claim: &Claim| {
            other.0 == us.0 || (claim.counts && claim.peer.as_deref() == Some(peer))
        };
        self.lock()
            .iter()
            .filter(|(other, held)| {
                **other != us && held.claim.place.system == place.system && counts(other, &held.claim)
            })
            .map(|(_, held)| Spared {
                desired: Arc::clone(&held.claim.desired),
                same_database: held.claim.place == *place,
            })
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock()
    }
}
