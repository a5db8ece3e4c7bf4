//! Changes of the spec after the role was created.

use serde_json::{Value, json};
use stanchion_kernel::problem::Class;

use super::*;

/// An object whose role `alice` was created on this instance.
fn provisioned(on: Value, spec: &Value) -> PostgresUser {
    let mut status = json!({ "provisionedUsername": "alice", "observedGeneration": 1 });
    if on.is_object() {
        status["provisionedInstanceRef"] = on;
    }
    let mut object = json!({
        "apiVersion": "db.example.com/v1alpha1", "kind": "PostgresUser",
        "metadata": { "name": "alice", "namespace": "ns", "uid": "uid" },
        "spec": { "username": "alice", "database": "app", "passwordSecretRef": { "name": "s" } },
        "status": status,
    });
    for (key, value) in spec.as_object().unwrap() {
        object["spec"][key] = value.clone();
    }
    serde_json::from_value(object).unwrap()
}

fn main_of_ns() -> Value {
    json!({ "name": "main", "namespace": "ns" })
}

#[test]
fn a_role_is_left_where_it_was_made_and_as_it_was_called() {
    let on = |name: &str| json!({ "instanceRef": { "name": name } });
    for (made_on, spec, refusal) in [
        (Value::Null, json!({}), None),
        (main_of_ns(), on("main"), None),
        (main_of_ns(), json!({ "instanceRef": main_of_ns() }), None),
        (main_of_ns(), on("other"), Some(INSTANCE_IS_IMMUTABLE)),
        (main_of_ns(), json!({}), Some(INSTANCE_IS_IMMUTABLE)),
        (Value::Null, on("main"), Some(INSTANCE_IS_IMMUTABLE)),
        (
            Value::Null,
            json!({ "username": "bob" }),
            Some("username is immutable after creation (old: alice, new: bob)"),
        ),
    ] {
        let problem = validate(&provisioned(made_on, &spec)).err();
        assert!(
            problem
                .as_ref()
                .is_none_or(|problem| problem.class == Class::Permanent),
            "only another spec helps"
        );
        assert_eq!(
            problem.map(|problem| problem.message).as_deref(),
            refusal,
            "{spec}"
        );
    }
}

/// Independent of the current spec.
#[test]
fn a_deletion_goes_where_the_role_was_made() {
    let moved = json!({ "instanceRef": { "name": "other" }, "username": "bob" });
    let cleanup = |user: &PostgresUser| match cleanup_target(user) {
        Target::Cleanup(cleanup) => (cleanup.username, cleanup.instance),
        _ => panic!("it goes"),
    };
    let there = InstanceRef {
        name: "main".into(),
        namespace: Some("ns".into()),
        kind: stanchion_api::user::InstanceKind::default(),
    };
    let alice = Some("alice".to_owned());
    assert_eq!(
        cleanup(&provisioned(main_of_ns(), &moved)),
        (alice.clone(), Some(there))
    );
    assert_eq!(cleanup(&provisioned(Value::Null, &moved)), (alice, None));
}
