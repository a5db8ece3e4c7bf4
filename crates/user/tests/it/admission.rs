//! What the API server accepts by the schema alone, and the messages of its refusals.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::{Api, CustomResourceExt};
use serde_json::{Value, json};
use stanchion_api::PostgresUser;
use stanchion_api::user::INSTANCE_IS_IMMUTABLE;
use stanchion_testkit::cluster::Cluster;
use stanchion_testkit::wait;

use super::test_env::{TestEnv, WAIT_TIMEOUT, any};

fn spec() -> Value {
    json!({ "username": "alice", "database": "app", "passwordSecretRef": { "name": "alice" } })
}

fn with(field: &str, value: Value) -> Value {
    let mut spec = spec();
    spec[field] = value;
    spec
}

/// The API server's answer to this spec.
async fn apply(env: &TestEnv, name: &str, spec: Value) -> Result<PostgresUser, String> {
    let user = json!({
        "apiVersion": "db.example.com/v1alpha1", "kind": "PostgresUser", "metadata": { "name": name }, "spec": spec,
    });
    let params = PatchParams::apply("test").force();
    let applied = env.users().patch(name, &params, &Patch::Apply(&user)).await;
    applied.map_err(|error| error.to_string())
}

/// C34, C35, C40, A16: refused names, their messages, and that nothing is stored.
#[tokio::test]
async fn invalid_usernames_are_rejected_at_admission() {
    let env = TestEnv::new(any()).await;
    let lower_case = "username must be lower-case ASCII: ^[a-z_][a-z0-9_$]*$";
    let reserved = "username is reserved by postgres";
    let (long, bytes) = ("a".repeat(64), "é".repeat(32));
    for (name, words) in [
        ("a-b", "username cannot contain hyphens: postgres rejects it"),
        (long.as_str(), "63"),
        (bytes.as_str(), lower_case),
        ("x SUPERUSER", lower_case),
        ("a;DROP ROLE b", lower_case),
        ("a; DROP ROLE b", lower_case),
        ("A", lower_case),
        ("Ü", lower_case),
        ("\"", lower_case),
        ("\"q\"", lower_case),
        ("$$", lower_case),
        ("pg_x", reserved),
        ("public", reserved),
        ("none", reserved),
        ("postgres", reserved),
        ("", "at least 1"),
    ] {
        let refused = apply(&env, "refused", with("username", json!(name)))
            .await
            .unwrap_err();
        assert!(refused.contains(words), "{name}: {refused}");
        assert!(env.users().get_opt("refused").await.unwrap().is_none(), "{name}");
    }
    for (object, name) in [("longest", "a".repeat(63)), ("odd", "_a$1".into())] {
        apply(&env, object, with("username", json!(name))).await.unwrap();
    }
}

/// The other rules of the schema, with their messages.
#[tokio::test]
async fn a_spec_that_contradicts_itself_is_refused() {
    let env = TestEnv::new(any()).await;
    let one = "exactly one of passwordSecretRef, password.generate, password.disabled, auth.iam is required";
    let mut none = spec();
    none.as_object_mut().unwrap().remove("passwordSecretRef");
    for (spec, words) in [
        (none, one),
        (with("password", json!({ "generate": {} })), one),
        (with("auth", json!({ "iam": { "provider": "aws" } })), one),
        (with("password", json!({ "disabled": true })), one),
        (
            with("password", json!({ "rotation": { "interval": "1h" } })),
            "password.rotation needs password.generate (rotate a user-supplied Secret by changing the Secret)",
        ),
        (
            with("privileges", json!(["GRANT"])),
            "Unsupported value: \"GRANT\"",
        ),
        (with("database", json!("a b")), "spec.database"),
        (
            with("driftPolicy", json!({ "interval": "soon" })),
            "spec.driftPolicy.interval",
        ),
        (with("role", json!({ "connectionLimit": -2 })), "connectionLimit"),
        (with("role", json!({ "validUntil": "tomorrow" })), "validUntil"),
        (
            with("deletionPolicy", json!("Keep")),
            "Unsupported value: \"Keep\"",
        ),
        (
            with("credentialsSecret", json!({ "name": "c", "keys": ["xml"] })),
            "Unsupported value: \"xml\"",
        ),
        (
            with(
                "databases",
                json!([{ "name": "a", "schemas": [{ "name": "pg_catalog" }] }]),
            ),
            "belong to the server and to the operator",
        ),
        (
            with("createDatabase", json!({ "schemas": ["app", "_stanchion"] })),
            "belong to the server and to the operator",
        ),
        (
            with("databases", json!([{ "name": "a" }, { "name": "a" }])),
            "duplicate entries for key",
        ),
    ] {
        let refused = apply(&env, "refused", spec).await.unwrap_err();
        assert!(refused.contains(words), "{refused}");
    }
    apply(&env, "disabled", with("password", json!({ "disabled": false })))
        .await
        .unwrap();
}

/// C36, A17: the name is immutable, everything else may change.
#[tokio::test]
async fn a_username_is_immutable() {
    let env = TestEnv::new(any()).await;
    apply(&env, "alice", spec()).await.unwrap();
    let refused = apply(&env, "alice", with("username", json!("bob")))
        .await
        .unwrap_err();
    assert!(
        refused.contains("username is immutable after creation (old: alice, new: bob)"),
        "{refused}"
    );
    let changed = apply(&env, "alice", with("database", json!("other")))
        .await
        .unwrap();
    assert_eq!(changed.spec.database, "other");
}

/// A role does not move to another server: the old one would be left behind.
#[tokio::test]
async fn an_instance_reference_is_immutable() {
    let env = TestEnv::new(any()).await;
    let on = |name: &str| with("instanceRef", json!({ "name": name }));
    apply(&env, "alice", on("main")).await.unwrap();
    for moved in [on("other"), spec()] {
        let refused = apply(&env, "alice", moved).await.unwrap_err();
        assert!(refused.contains(INSTANCE_IS_IMMUTABLE), "{refused}");
    }
    apply(&env, "bob", spec()).await.unwrap();
    let refused = apply(&env, "bob", on("main")).await.unwrap_err();
    assert!(refused.contains(INSTANCE_IS_IMMUTABLE), "{refused}");
}

/// C38, A24: the stored object includes the defaults, so that a second apply changes nothing and the diff is empty.
#[tokio::test]
async fn a_manifest_applied_twice_is_unchanged() {
    let env = TestEnv::new(any()).await;
    let Some(kubectl) = env.cluster.kubectl() else {
        return;
    };
    let manifest = "\
apiVersion: db.example.com/v1alpha1
kind: PostgresUser
metadata: {name: alice}
spec: {username: alice, database: app, privileges: [CONNECT], passwordSecretRef: {name: alice-password}, password: {}, credentialsSecret: {name: c}, driftPolicy: {}, onDelete: {}, createDatabase: {}}
";
    let run = async |command: &str| {
        let arguments = [command, "-n", &env.namespace, "-f", "-"];
        kubectl.run_with(&arguments, manifest).await
    };
    assert!(run("apply").await.unwrap().contains("created"));
    assert!(run("apply").await.unwrap().contains("unchanged"));
    assert_eq!(run("diff").await.unwrap(), "");
    let stored = serde_json::to_value(env.users().get("alice").await.unwrap().spec).unwrap();
    for (path, value) in [
        ("/passwordSecretRef/key", json!("password")),
        ("/membershipPolicy", json!("Additive")),
        ("/existingRolePolicy", json!("Fail")),
        ("/deletionPolicy", json!("Delete")),
        ("/onDelete/ownedObjects", json!("Reassign")),
        ("/onDelete/terminateSessions", json!(true)),
        ("/driftPolicy/mode", json!("Correct")),
        ("/driftPolicy/interval", json!("10m")),
        ("/suspend", json!(false)),
        ("/mode", json!("Apply")),
        ("/password/encoding", json!("scram-sha-256")),
        ("/credentialsSecret/type", json!("Opaque")),
        ("/credentialsSecret/keys", json!(["libpq", "uri", "jdbc"])),
        ("/createDatabase/deletionPolicy", json!("Retain")),
    ] {
        assert_eq!(stored.pointer(path), Some(&value), "{path}");
    }
}

/// C37, A17: an object that a newer schema would refuse can be labelled, changed in its other fields, lose its
/// finalizer and be deleted. A copy of the CRD under another group stands for an older one.
#[tokio::test]
async fn an_object_that_predates_validation_can_be_deleted() {
    let cluster = Cluster::shared().await;
    let namespace = cluster.namespace("legacy").await;
    let group = format!("{namespace}.example.com");
    let renamed = |rules: bool| {
        let mut crd = serde_json::to_value(PostgresUser::crd()).unwrap();
        crd["metadata"]["name"] = json!(format!("postgresusers.{group}"));
        crd["spec"]["group"] = json!(group);
        crd["spec"]["names"]["categories"] = json!([]);
        if !rules {
            strip_rules(&mut crd);
        }
        serde_json::from_value::<CustomResourceDefinition>(crd).unwrap()
    };
    cluster.install_crds([renamed(false)]).await;
    let kind = GroupVersionKind::gvk(&group, "v1alpha1", "PostgresUser");
    let resource = ApiResource::from_gvk_with_plural(&kind, "postgresusers");
    let api: Api<DynamicObject> = Api::namespaced_with(cluster.client().await, &namespace, &resource);
    let object = json!({
        "apiVersion": format!("{group}/v1alpha1"), "kind": "PostgresUser",
        "metadata": { "name": "old", "finalizers": ["db.example.com/postgresuser"] },
        "spec": { "username": "Old-Name", "database": "app" },
    });
    let object = serde_json::from_value(object).unwrap();
    wait::eventually(WAIT_TIMEOUT, "the kind to be served", async || {
        api.create(&PostParams::default(), &object)
            .await
            .map(drop)
            .map_err(|error| error.to_string())
    })
    .await;
    cluster.install_crds([renamed(true)]).await;
    let fresh = json!({
        "apiVersion": format!("{group}/v1alpha1"), "kind": "PostgresUser",
        "metadata": { "name": "new" }, "spec": { "username": "Old-Name", "database": "app" },
    });
    let fresh = serde_json::from_value(fresh).unwrap();
    wait::eventually(WAIT_TIMEOUT, "the rules to hold", async || {
        let dry = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        api.create(&dry, &fresh).await.is_err()
    })
    .await;
    let merge = async |patch: Value| {
        api.patch("old", &PatchParams::default(), &Patch::Merge(&patch))
            .await
            .unwrap();
    };
    merge(json!({ "metadata": { "labels": { "a": "b" } } })).await;
    api.delete("old", &DeleteParams::default()).await.unwrap();
    merge(json!({ "metadata": { "finalizers": null } })).await;
    wait::gone(&api, "old", WAIT_TIMEOUT).await;
}

fn strip_rules(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            map.remove("x-kubernetes-validations");
            map.values_mut().for_each(strip_rules);
        }
        Value::Array(items) => items.iter_mut().for_each(strip_rules),
        _ => {}
    }
}
