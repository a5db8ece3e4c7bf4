//! What is reported, for plain values.

use serde_json::{Value, json};

use super::ensure::hash;
use super::*;

/// F13, F16: a server that is refused is not connected, whatever an earlier pass said.
#[test]
fn a_refused_server_is_not_connected() {
    let disconnected =
        |cause, answered| is_disconnected(&Problem::human("Any", String::new()).with_cause(cause), answered);
    for cause in [Cause::Unreachable, Cause::ServerRefused] {
        assert!(
            disconnected(cause, false) && disconnected(cause, true),
            "{cause:?}"
        );
    }
    assert!(disconnected(Cause::AnswerTooLarge, false) && !disconnected(Cause::AnswerTooLarge, true));
    assert!(!disconnected(Cause::Other, false));
}

/// F19.
#[test]
fn a_guest_is_looked_at_again_whatever_its_spec_says() {
    let looks = |reference: Value, own: Option<u64>| {
        let user = json!({
            "apiVersion": "db.example.com/v1alpha1", "kind": "PostgresUser",
            "metadata": { "name": "a", "namespace": "ns" },
            "spec": { "username": "a", "database": "d", "instanceRef": reference },
        });
        let user: PostgresUser = serde_json::from_value(user).unwrap();
        requeue_after(&user, own.map(Duration::from_secs)).map(|time| time.as_secs())
    };
    let guest = json!({ "name": "main", "namespace": "bank" });
    assert_eq!(looks(guest.clone(), None), Some(600));
    assert_eq!(looks(guest.clone(), Some(1_000_000)), Some(600));
    assert_eq!(looks(guest, Some(60)), Some(60));
    for at_home in [
        json!(null),
        json!({ "name": "main" }),
        json!({ "name": "main", "namespace": "ns" }),
    ] {
        assert_eq!(looks(at_home, None), None);
    }
}

#[test]
fn a_plan_is_known_by_its_statements_and_their_order() {
    let plan = |lines: &[&str]| hash(&lines.iter().map(ToString::to_string).collect::<Vec<_>>());
    assert_eq!(plan(&["a", "b"]), plan(&["a", "b"]));
    assert_ne!(plan(&["a", "b"]), plan(&["b", "a"]));
    assert_ne!(plan(&["ab"]), plan(&["a", "b"]));
    assert_eq!(plan(&[]).len(), 32);
}

/// The column of `kubectl get` shows `Ready`.
#[test]
fn a_user_that_was_suspended_from_the_beginning_says_so() {
    let user = json!({
        "apiVersion": "db.example.com/v1alpha1", "kind": "PostgresUser",
        "metadata": { "name": "a", "namespace": "ns", "generation": 1 },
        "spec": { "username": "a", "database": "d", "suspend": true },
    });
    let mut user: PostgresUser = serde_json::from_value(user).unwrap();
    let ready = |report: &Report<PostgresUserStatus>| {
        let ready = find(&report.status.conditions, condition::READY);
        ready.map(|ready| format!("{} {}", ready.status, ready.reason))
    };
    let report = suspended(&user, Timestamp::UNIX_EPOCH);
    assert_eq!(ready(&report).as_deref(), Some("Unknown Suspended"));
    user.status = Some(report.status);
    let again = suspended(&user, Timestamp::MAX);
    assert_eq!(Some(&again.status), user.status.as_ref());
    user.status.as_mut().unwrap().conditions[0].reason = "UserCreated".into();
    let known = suspended(&user, Timestamp::UNIX_EPOCH);
    assert_eq!(ready(&known).as_deref(), Some("Unknown UserCreated"));
}
