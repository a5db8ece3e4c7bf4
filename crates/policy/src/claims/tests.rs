//! Which policies block each other.

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
        place: DatabaseKey::parse(place).unwrap(),
        peer: Some("192.0.2.1:5432".into()),
        counts: true,
        waited: false,
        mode: Mode::Authoritative,
        desired: Arc::new(expand(&load(text, Strictness::Lenient).unwrap().value)),
        partial: false,
    }
}

#[test]
fn a_conflict_enqueues_the_other_policy() {
    let claims = Claims::default();
    let (rivals, affected) = claims.claim(&policy("a"), claim("1/5", "roles: [{name: x}]"));
    assert!(rivals.is_empty() && affected.is_empty());
    let (rivals, affected) = claims.claim(&policy("b"), claim("1/6", "roles: [{name: x}]"));
    assert_eq!(rivals[0].over, ["role \"x\""]);
    assert_eq!(affected, [policy("a")]);
    assert!(claims.is_contested(&policy("a")) && claims.is_contested(&policy("b")));
    let (_, affected) = claims.claim(&policy("b"), claim("1/6", "roles: [{name: x}]"));
    assert!(affected.is_empty(), "nothing new");
    let (rivals, affected) = claims.claim(&policy("b"), claim("1/6", "roles: [{name: y}]"));
    assert!(rivals.is_empty());
    assert_eq!(affected, [policy("a")]);
    assert!(!claims.is_contested(&policy("a")));
}

#[test]
fn a_search_for_conflicts_claims_nothing() {
    let claims = Claims::default();
    claims.claim(&policy("a"), claim("1/5", "roles: [{name: x}]"));
    let wanted = claim("1/5", "roles: [{name: x}]");
    assert_eq!(claims.rivals(&policy("b"), &wanted).len(), 1);
    assert!(!claims.is_contested(&policy("a")), "b has claimed nothing yet");
    assert_eq!(claims.claim(&policy("b"), wanted).1, [policy("a")]);
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
    let (rivals, affected) = claims.claim(&of("bank"), made(1, BOTH));
    assert!(rivals.is_empty(), "the older one goes on");
    assert_eq!(affected, [of("evil")], "the younger one learns of it");
    assert!(claims.is_contested(&of("evil")) && !claims.is_contested(&of("bank")));
    assert_eq!(claims.claim(&of("evil"), made(2, BOTH)).0.len(), 1);
    assert_eq!(claims.release(&of("bank")), [of("evil")]);
    assert!(!claims.is_contested(&of("evil")));
}

/// An older policy on a server with a copied identity, or with a login that may change nothing, blocks nobody.
#[test]
fn a_claim_that_does_not_count_blocks_no_policy() {
    let of_peer = |peer: Option<&str>| Claim {
        peer: peer.map(str::to_owned),
        ..made(1, BOTH)
    };
    let powerless = Claim {
        counts: false,
        ..made(1, BOTH)
    };
    // A claim from before a restart is spared all the same: it may be one of this server.
    for (mute, spared) in [
        (of_peer(Some("198.51.100.1:5432")), 0),
        (of_peer(None), 1),
        (powerless, 0),
    ] {
        let claims = Claims::default();
        claims.claim(&of("evil"), mute);
        assert!(claims.claim(&of("bank"), made(2, BOTH)).0.is_empty());
        assert!(!claims.is_contested(&of("bank")));
        let place = DatabaseKey::parse("1/5").unwrap();
        let others = claims.others(&of("bank"), &place, "192.0.2.1:5432");
        assert_eq!(others.len(), spared);
    }
}

#[test]
fn a_waiting_policy_waits_after_a_restart_until_both_have_claimed() {
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
fn policies_on_different_servers_do_not_conflict() {
    let claims = Claims::default();
    claims.claim(&policy("a"), claim("1/5", "roles: [{name: x}]"));
    let (rivals, _) = claims.claim(&policy("b"), claim("2/5", "roles: [{name: x}]"));
    assert!(rivals.is_empty());
}

#[test]
fn a_released_claim_unblocks_the_others() {
    let claims = Claims::default();
    claims.claim(&policy("a"), claim("1/5", "schemas: [{name: s}]"));
    claims.claim(&policy("b"), claim("1/5", "schemas: [{name: s}]"));
    assert_eq!(claims.release(&policy("b")), [policy("a")]);
    assert!(!claims.is_contested(&policy("a")));
    assert!(claims.release(&policy("b")).is_empty());
    let others = claims.others(
        &policy("b"),
        &DatabaseKey::parse("1/5").unwrap(),
        "192.0.2.1:5432",
    );
    assert_eq!(others.len(), 1);
}

#[test]
fn a_newer_claim_replaces_a_remembered_one() {
    let claims = Claims::default();
    claims.claim(&policy("a"), claim("1/5", "roles: [{name: new}]"));
    claims.remember(&policy("a"), claim("1/5", "roles: [{name: old}]"));
    let (rivals, _) = claims.claim(&policy("b"), claim("1/5", "roles: [{name: old}]"));
    assert!(rivals.is_empty());
}

/// Whatever policies claim at the same time, the result is that of their last claims.
#[test]
fn concurrent_claims_find_each_other() {
    let (claims, texts) = (
        Claims::default(),
        ["roles: [{name: x}]", "roles: [{name: y}]", ""],
    );
    let names = ["a", "b", "c", "d"].map(policy);
    std::thread::scope(|scope| {
        for (thread, name) in names.iter().enumerate() {
            let claims = &claims;
            scope.spawn(move || {
                for round in 0..200 {
                    match (round * 7 + thread * 5) % 4 {
                        3 => drop(claims.release(name)),
                        text => drop(claims.claim(name, claim("1/5", texts[text]))),
                    }
                }
            });
        }
    });
    let all = claims.lock();
    for (name, held) in all.iter() {
        let rivals = overlapping(&others(&all, name), &held.claim);
        let expected: BTreeSet<_> = rivals.iter().map(|rival| pair(&rival.who.key)).collect();
        assert_eq!(held.rivals, expected, "{name:?}");
    }
}
