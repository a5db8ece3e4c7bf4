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
        let place = DatabaseKey::parse("1/5").unwrap();
        assert!(claims.others(&of("bank"), &place, "192.0.2.1:5432").is_empty());
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
