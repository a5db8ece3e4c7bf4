//! Who declares what, in every namespace, by the databases' own word.
//!
//! Claiming and looking for others is one step under one lock: of two policies that come at the same time at least
//! one sees the other. Whoever changes what it claims learns who has to be told.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use stanchion_kernel::watch::references::Key;
use stanchion_postgres::Identity;
use stanchion_roles::expand::Desired;

use crate::overlap::overlap;
use crate::target::Who;

/// A database: the server that it is on, and its number there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    system: String,
    database: String,
}

impl Place {
    /// As an identity is written in a status.
    pub fn parse(text: &str) -> Option<Self> {
        let (system, database) = text.rsplit_once('/')?;
        Some(Self {
            system: system.into(),
            database: database.into(),
        })
    }
}

impl From<&Identity> for Place {
    fn from(identity: &Identity) -> Self {
        Self {
            system: identity.system().into(),
            database: identity.database_oid().to_string(),
        }
    }
}

/// What one policy declares.
#[derive(Clone)]
pub struct Claim {
    /// The policy's uid.
    pub uid: String,
    /// Where.
    pub place: Place,
    /// What.
    pub desired: Arc<Desired>,
}

struct Held {
    claim: Claim,
    /// Who declares the same.
    rivals: BTreeSet<(String, String)>,
}

/// Two policies that are in each other's way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rival {
    /// The other policy.
    pub who: Who,
    /// What both declare.
    pub over: Vec<String>,
}

/// What all policies declare. Clones share it.
#[derive(Clone, Default)]
pub struct Claims(Arc<Mutex<HashMap<(String, String), Held>>>);

fn pair(key: &Key) -> (String, String) {
    (key.namespace.clone(), key.name.clone())
}

fn key(pair: &(String, String)) -> Key {
    Key {
        namespace: pair.0.clone(),
        name: pair.1.clone(),
    }
}

impl Claims {
    /// Declares, and returns who declares the same, and whose lot has changed by it.
    pub fn claim(&self, policy: &Key, claim: Claim) -> (Vec<Rival>, Vec<Key>) {
        let mut all = self.lock();
        let us = pair(policy);
        let before = all.remove(&us).map(|held| held.rivals).unwrap_or_default();
        let mut rivals = Vec::new();
        for (other, held) in all.iter_mut() {
            let same_server = held.claim.place.system == claim.place.system;
            let over = if same_server {
                overlap(
                    &claim.desired,
                    &held.claim.desired,
                    held.claim.place == claim.place,
                )
            } else {
                Vec::new()
            };
            if over.is_empty() {
                held.rivals.remove(&us);
            } else {
                held.rivals.insert(us.clone());
                let who = Who {
                    key: key(other),
                    uid: held.claim.uid.clone(),
                };
                rivals.push(Rival { who, over });
            }
        }
        rivals.sort_by_key(|rival| pair(&rival.who.key));
        let now: BTreeSet<_> = rivals.iter().map(|rival| pair(&rival.who.key)).collect();
        let told = before.symmetric_difference(&now).map(key).collect();
        all.insert(us, Held { claim, rivals: now });
        (rivals, told)
    }

    /// Declares nothing any more, and returns whose lot has changed by it.
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

    /// Notes what a policy declared before this process began, unless it has spoken since.
    pub fn remember(&self, policy: &Key, claim: Claim) {
        if !self.lock().contains_key(&pair(policy)) {
            self.claim(policy, claim);
        }
    }

    /// Whether somebody declares the same.
    pub fn is_contested(&self, policy: &Key) -> bool {
        self.lock()
            .get(&pair(policy))
            .is_some_and(|held| !held.rivals.is_empty())
    }

    /// What all others declare in this database.
    pub fn others(&self, policy: &Key, place: &Place) -> Vec<Arc<Desired>> {
        let us = pair(policy);
        self.lock()
            .iter()
            .filter(|(other, held)| **other != us && held.claim.place == *place)
            .map(|(_, held)| Arc::clone(&held.claim.desired))
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(String, String), Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use stanchion_roles::expand::expand;
    use stanchion_roles::manifest::{Strictness, load};

    use super::*;

    fn policy(name: &str) -> Key {
        Key {
            namespace: "ns".into(),
            name: name.into(),
        }
    }

    fn claim(place: &str, text: &str) -> Claim {
        Claim {
            uid: "u".into(),
            place: Place::parse(place).unwrap(),
            desired: Arc::new(expand(&load(text, Strictness::Lenient).unwrap().value)),
        }
    }

    #[test]
    fn the_second_sees_the_first_and_the_first_is_told() {
        let claims = Claims::default();
        let (rivals, told) = claims.claim(&policy("a"), claim("1/5", "roles: [{name: x}]"));
        assert!(rivals.is_empty() && told.is_empty());
        let (rivals, told) = claims.claim(&policy("b"), claim("1/6", "roles: [{name: x}]"));
        assert_eq!(rivals[0].over, ["role \"x\""]);
        assert_eq!(told, [policy("a")]);
        assert!(claims.is_contested(&policy("a")) && claims.is_contested(&policy("b")));
        let (_, told) = claims.claim(&policy("b"), claim("1/6", "roles: [{name: x}]"));
        assert!(told.is_empty(), "nothing new");
        let (rivals, told) = claims.claim(&policy("b"), claim("1/6", "roles: [{name: y}]"));
        assert!(rivals.is_empty());
        assert_eq!(told, [policy("a")]);
        assert!(!claims.is_contested(&policy("a")));
    }

    #[test]
    fn another_server_is_another_world() {
        let claims = Claims::default();
        claims.claim(&policy("a"), claim("1/5", "roles: [{name: x}]"));
        let (rivals, _) = claims.claim(&policy("b"), claim("2/5", "roles: [{name: x}]"));
        assert!(rivals.is_empty());
    }

    #[test]
    fn who_goes_lets_the_others_go_on() {
        let claims = Claims::default();
        claims.claim(&policy("a"), claim("1/5", "schemas: [{name: s}]"));
        claims.claim(&policy("b"), claim("1/5", "schemas: [{name: s}]"));
        assert_eq!(claims.release(&policy("b")), [policy("a")]);
        assert!(!claims.is_contested(&policy("a")));
        assert!(claims.release(&policy("b")).is_empty());
        let others = claims.others(&policy("b"), &Place::parse("1/5").unwrap());
        assert_eq!(others.len(), 1);
    }

    #[test]
    fn what_was_said_since_counts_more_than_what_is_remembered() {
        let claims = Claims::default();
        claims.claim(&policy("a"), claim("1/5", "roles: [{name: new}]"));
        claims.remember(&policy("a"), claim("1/5", "roles: [{name: old}]"));
        let (rivals, _) = claims.claim(&policy("b"), claim("1/5", "roles: [{name: old}]"));
        assert!(rivals.is_empty());
    }
}
