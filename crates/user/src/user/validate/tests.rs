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
    let cleanup = |user: &PostgresUser| {
        let cleanup = crate::user::cleanup::target(user);
        (cleanup.username, cleanup.instance)
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

mod names {
    use super::super::*;

    /// C34, C35, C40 and A16, with the guide's messages.
    #[test]
    fn usernames_as_in_the_guide() {
        let too_long = "a".repeat(64);
        let bytes = "\u{e9}".repeat(32);
        for (name, word) in [
            ("a-b", "hyphens"),
            (too_long.as_str(), "too long"),
            (bytes.as_str(), "too long"),
            ("x SUPERUSER", "lower-case"),
            ("a;DROP ROLE b", "lower-case"),
            ("A", "lower-case"),
            ("\u{dc}", "lower-case"),
            ("\"q\"", "lower-case"),
            ("$$", "lower-case"),
            ("1a", "lower-case"),
            ("", "lower-case"),
            ("pg_x", "reserved"),
            ("public", "reserved"),
            ("none", "reserved"),
            ("postgres", "reserved"),
        ] {
            let problem = username(name).unwrap_err();
            assert!(problem.message.contains(word), "{name}: {problem}");
        }
        for name in ["a".repeat(63).as_str(), "_a$1", "user", "postgres2"] {
            username(name).unwrap();
        }
    }

    #[test]
    fn parameters_are_named_as_postgresql_names_them() {
        for name in ["search_path", "TimeZone", "plpgsql.extra_warnings", "a.b.c"] {
            parameter_name(name).unwrap();
        }
        for name in ["", "a b", "a;b", "a.", ".a", "a'", "1a", "a-b", "\""] {
            parameter_name(name).unwrap_err();
        }
    }
}

mod keywords {
    use std::collections::BTreeSet;

    use stanchion_api::user::Privilege;

    use crate::user::target::{DatabaseRequest, SchemaRequest};

    #[test]
    fn the_guides_words_are_about_the_database() {
        let mut request = DatabaseRequest::default();
        request.add(&[Privilege::Connect, Privilege::Temp, Privilege::All]);
        assert_eq!(
            request.privileges,
            BTreeSet::from(["CONNECT", "CREATE", "TEMPORARY"])
        );
        assert!(request.schemas.is_empty());
    }

    #[test]
    fn table_words_without_schemas_mean_public() {
        let mut request = DatabaseRequest::default();
        request.add(&[Privilege::Read]);
        let public = &request.schemas["public"];
        assert_eq!(public.tables, BTreeSet::from(["SELECT"]));
        assert_eq!(public.schema, BTreeSet::from(["USAGE"]));
    }

    #[test]
    fn table_words_apply_to_the_listed_schemas_only() {
        let mut request = DatabaseRequest::default();
        request.schemas.insert("app".into(), SchemaRequest::default());
        request.add(&[Privilege::Select]);
        assert_eq!(request.schemas.keys().collect::<Vec<_>>(), ["app"]);
    }

    #[test]
    fn a_schema_with_words_of_its_own_gets_no_others() {
        let mut request = DatabaseRequest::default();
        let own = SchemaRequest {
            explicit: true,
            ..SchemaRequest::default()
        };
        request.schemas.insert("app".into(), own);
        request.schemas.insert("log".into(), SchemaRequest::default());
        request.add(&[Privilege::Write]);
        assert!(request.schemas["app"].tables.is_empty());
        assert!(request.schemas["log"].tables.contains("INSERT"));
    }
}
