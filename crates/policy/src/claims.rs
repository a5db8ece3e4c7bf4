//! Who declares what, in every namespace, by the databases' own word.
//!
//! Claiming and looking for others is one step under one lock: of two policies that come at the same time at least
//! one sees the other. Whoever changes what it claims learns who has to be told.
//!
//! | the other policy is | what both declare |
//! |---|---|
//! | of the same namespace, on the same server by its own word | neither is applied |
//! | of another namespace, at the same address, and older | the younger one waits |
//! | of another namespace, at another address | no conflict: anybody's server can say that it is ours |
//! | of another namespace, and may not or does not change anything | no conflict: it has no say |

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
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
    /// When it was made: the older one has the right of way.
    pub created: Option<Timestamp>,
    /// Where.
    pub place: Place,
    /// At which address; not known of what an earlier process left.
    pub peer: Option<String>,
    /// Whether it counts in other namespaces: it may change roles there, and does so.
    pub counts: bool,
    /// Whether it waited for another namespace's policy when it was looked at last.
    pub waited: bool,
    /// What.
    pub desired: Arc<Desired>,
}

struct Held {
    claim: Claim,
    /// The how manieth it was: decides between those that were made in the same second.
    order: usize,
    /// Who declares the same.
    rivals: BTreeSet<(String, String)>,
}

/// Whether `other` keeps `us` from being applied, given that both declare the same.
fn hinders(other: Party<'_>, us: Party<'_>) -> bool {
    let ((their_name, theirs, their_order), (our_name, ours, our_order)) = (other, us);
    if their_name.0 == our_name.0 {
        return true;
    }
    let older = (theirs.created, theirs.waited, their_order) < (ours.created, ours.waited, our_order);
    let same_server = match (&theirs.peer, &ours.peer) {
        (Some(theirs), Some(ours)) => theirs == ours,
        // What was found out before a restart holds until both have spoken again.
        _ => ours.waited,
    };
    older && same_server && theirs.counts
}

type Pair = (String, String);
type Party<'a> = (&'a Pair, &'a Claim, usize);

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
        let next = all.values().map(|held| held.order + 1).max().unwrap_or_default();
        let (order, before) = all
            .remove(&us)
            .map_or_else(|| (next, BTreeSet::new()), |held| (held.order, held.rivals));
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
        rivals.retain(|rival| {
            let name = pair(&rival.who.key);
            all.get(&name)
                .is_some_and(|held| hinders((&name, &held.claim, held.order), (&us, &claim, order)))
        });
        let told = before.symmetric_difference(&now).map(key).collect();
        let held = Held {
            claim,
            order,
            rivals: now,
        };
        all.insert(us, held);
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

    /// Whether somebody declares the same, and is in the way.
    pub fn is_contested(&self, policy: &Key) -> bool {
        let (all, us) = (self.lock(), pair(policy));
        all.get(&us).is_some_and(|ours| {
            ours.rivals.iter().any(|name| {
                all.get(name).is_some_and(|held| {
                    hinders((name, &held.claim, held.order), (&us, &ours.claim, ours.order))
                })
            })
        })
    }

    /// What all others declare in this database, as far as it counts: of other namespaces only what is at the same
    /// address.
    pub fn others(&self, policy: &Key, place: &Place, peer: &str) -> Vec<Arc<Desired>> {
        let us = pair(policy);
        let counts = |other: &Pair, claim: &Claim| {
            other.0 == us.0 || (claim.counts && claim.peer.as_deref() == Some(peer))
        };
        self.lock()
            .iter()
            .filter(|(other, held)| **other != us && held.claim.place == *place && counts(other, &held.claim))
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
            created: None,
            place: Place::parse(place).unwrap(),
            peer: Some("192.0.2.1:5432".into()),
            counts: true,
            waited: false,
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

    fn of(namespace: &str) -> Key {
        Key {
            namespace: namespace.into(),
            name: "p".into(),
        }
    }

    fn made(second: i64, text: &str) -> Claim {
        Claim {
            created: Some(Timestamp::from_second(second).unwrap()),
            ..claim("1/5", text)
        }
    }

    const BOTH: &str = "roles: [{name: x}]";

    #[test]
    fn across_namespaces_the_younger_one_waits() {
        let claims = Claims::default();
        assert!(claims.claim(&of("evil"), made(2, BOTH)).0.is_empty());
        let (rivals, told) = claims.claim(&of("bank"), made(1, BOTH));
        assert!(rivals.is_empty(), "the older one goes on");
        assert_eq!(told, [of("evil")], "the younger one learns of it");
        assert!(claims.is_contested(&of("evil")) && !claims.is_contested(&of("bank")));
        assert_eq!(claims.claim(&of("evil"), made(2, BOTH)).0.len(), 1);
        assert_eq!(claims.release(&of("bank")), [of("evil")]);
        assert!(!claims.is_contested(&of("evil")));
    }

    /// An older policy on a server that only says that it is the bank's, or with a login that may change nothing.
    #[test]
    fn who_has_no_say_blocks_nobody() {
        for mute in [
            Claim {
                peer: Some("198.51.100.1:5432".into()),
                ..made(1, BOTH)
            },
            Claim {
                peer: None,
                ..made(1, BOTH)
            },
            Claim {
                counts: false,
                ..made(1, BOTH)
            },
        ] {
            let claims = Claims::default();
            claims.claim(&of("evil"), mute);
            assert!(claims.claim(&of("bank"), made(2, BOTH)).0.is_empty());
            assert!(!claims.is_contested(&of("bank")));
            let place = Place::parse("1/5").unwrap();
            assert!(claims.others(&of("bank"), &place, "192.0.2.1:5432").is_empty());
        }
    }

    #[test]
    fn who_waited_before_a_restart_waits_until_both_have_spoken() {
        let claims = Claims::default();
        let unknown = |claim: Claim| Claim { peer: None, ..claim };
        claims.remember(&of("bank"), unknown(made(1, BOTH)));
        let waited = Claim {
            waited: true,
            ..made(2, BOTH)
        };
        assert_eq!(claims.claim(&of("evil"), waited).0.len(), 1);
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
        let others = claims.others(&policy("b"), &Place::parse("1/5").unwrap(), "192.0.2.1:5432");
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
