//! The contents of the status, when they change, and who may write it.

use futures::StreamExt;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams, WatchEvent, WatchParams};
use kube::{Api, CustomResourceExt};
use serde_json::{Value, json};
use stanchion_api::PostgresUser;
use stanchion_api::user::Phase;
use stanchion_testkit::cluster::{Grant, rule};

use super::test_env::{TestEnv, any, condition, role_name};

/// C25: conditions are a map by type: those of another writer survive our writes, and ours survive theirs.
#[tokio::test]
async fn conditions_of_others_live_beside_ours() {
    let crd = serde_json::to_value(PostgresUser::crd()).unwrap();
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"];
    let conditions = &schema["properties"]["conditions"];
    assert_eq!(conditions["x-kubernetes-list-type"], "map");
    assert_eq!(conditions["x-kubernetes-list-map-keys"], json!(["type"]));

    let env = TestEnv::new(any()).await;
    let role = role_name();
    let _operator = env.operator().await;
    env.password("bea", "secret").await;
    env.user("bea", &role, json!({})).await;
    env.ready("bea").await;
    let theirs = json!({
        "type": "Audited", "status": "True", "reason": "Looked", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let status = |conditions: Value| {
        json!({
            "apiVersion": "db.example.com/v1alpha1", "kind": "PostgresUser", "metadata": { "name": "bea" },
            "status": { "conditions": conditions },
        })
    };
    let params = PatchParams::apply("auditor");
    let patch = Patch::Apply(status(json!([theirs])));
    env.users().patch_status("bea", &params, &patch).await.unwrap();
    env.user("bea", &role, json!({ "role": { "connectionLimit": 2 } }))
        .await;
    let user = env.ready("bea").await;
    let types: Vec<String> = user
        .status
        .unwrap()
        .conditions
        .into_iter()
        .map(|found| found.type_)
        .collect();
    assert!(types.contains(&"Audited".to_owned()), "{types:?}");
    let twice = Patch::Apply(status(json!([theirs, theirs])));
    assert!(env.users().patch_status("bea", &params, &twice).await.is_err());
}

/// C26, A24: a client that waits for Ready after an edit waits for the edit.
#[tokio::test]
async fn ready_is_never_said_of_an_older_spec() {
    let env = TestEnv::new(any()).await;
    let role = role_name();
    let _operator = env.operator().await;
    env.password("cid", "secret").await;
    env.user("cid", &role, json!({})).await;
    env.ready("cid").await;
    let limit = format!("SELECT rolconnlimit FROM pg_roles WHERE rolname = '{role}'");
    for n in 1..4 {
        env.user("cid", &role, json!({ "role": { "connectionLimit": n } }))
            .await;
        // As `kubectl wait` does: True, and not for an older generation if the condition has one.
        env.until("cid", |user| {
            let conditions = user.status.as_ref().map(|status| status.conditions.as_slice());
            conditions.unwrap_or_default().iter().any(|condition| {
                condition.type_ == "Ready"
                    && condition.status == "True"
                    && condition
                        .observed_generation
                        .is_none_or(|seen| Some(seen) == user.metadata.generation)
            })
        })
        .await;
        assert_eq!(env.server_one(&limit).await, n.to_string());
    }
}

/// C27, C30, C32: values are stable: times change only when something happens, and the spec is never written.
#[tokio::test]
async fn times_move_only_when_something_happens() {
    let env = TestEnv::new(any()).await;
    let role = role_name();
    let operator = env.operator().await;
    env.password("dot", "secret").await;
    env.user("dot", &role, json!({})).await;
    let first = env.ready("dot").await;
    let before = first.status.clone().unwrap();
    for _ in 0..3 {
        env.look_again(&operator, "dot").await;
    }
    let touched = env.users().get("dot").await.unwrap();
    assert_eq!(touched.status.as_ref(), Some(&before));
    env.user("dot", &role, json!({ "role": { "connectionLimit": 5 } }))
        .await;
    let edited = env.ready("dot").await;
    let after = edited.status.clone().unwrap();
    assert_eq!(after.created_at, before.created_at);
    assert!(after.last_updated > before.last_updated);
    let since = |user: &PostgresUser| {
        let conditions = user.status.clone().unwrap().conditions.into_iter();
        conditions
            .map(|found| (found.type_, found.last_transition_time))
            .collect::<Vec<_>>()
    };
    assert_eq!(since(&edited), since(&first));
    assert_eq!(
        edited.metadata.generation,
        Some(2),
        "one for the creation, one for the edit"
    );
    for entry in edited.metadata.managed_fields.unwrap() {
        if entry.manager.as_deref() == Some("stanchion-user") {
            let fields = serde_json::to_string(&entry.fields_v1).unwrap();
            assert!(!fields.contains("f:spec"), "{fields}");
        }
    }
}

/// C31: the status is written through its subresource, by those who have the permission.
#[tokio::test]
async fn the_status_is_a_subresource() {
    let env = TestEnv::new(any()).await;
    let role = role_name();
    let _operator = env.operator().await;
    env.password("edy", "secret").await;
    env.user("edy", &role, json!({})).await;
    let before = env.ready("edy").await.status;
    env.patch(
        "edy",
        json!({ "status": { "phase": "Failed", "created": false } }),
    )
    .await;
    assert_eq!(env.users().get("edy").await.unwrap().status, before);
    let rules = vec![rule("db.example.com", &["postgresusers"], &["get", "patch"])];
    let user = env
        .cluster
        .user(
            &env.namespace,
            "guest",
            &[Grant::In(env.namespace.clone(), rules)],
        )
        .await;
    let users: Api<PostgresUser> = Api::namespaced(user.client().await, &env.namespace);
    let patch = Patch::Merge(json!({ "status": { "phase": "Failed" } }));
    let refused = users
        .patch_status("edy", &PatchParams::default(), &patch)
        .await
        .unwrap_err();
    assert!(matches!(refused, kube::Error::Api(status) if status.code == 403));
    let crds: Api<CustomResourceDefinition> = Api::all(env.client.clone());
    let crd = crds.get("postgresusers.db.example.com").await.unwrap();
    assert!(
        crd.spec.versions[0]
            .subresources
            .as_ref()
            .unwrap()
            .status
            .is_some()
    );
}

/// C32, C33: the phases of an object, each once and in order.
#[tokio::test]
async fn phases_appear_in_order() {
    let env = TestEnv::new(any()).await;
    let role = role_name();
    let users = env.users();
    let params = WatchParams::default().fields("metadata.name=fox");
    let mut events = users.watch(&params, "0").await.unwrap().boxed();
    let _operator = env.operator().await;
    env.password("fox", "secret").await;
    env.user("fox", &role, json!({})).await;
    let mut phases: Vec<Option<Phase>> = Vec::new();
    let mut asked = false;
    while let Some(event) = events.next().await {
        match event.unwrap() {
            WatchEvent::Added(user) | WatchEvent::Modified(user) => {
                let phase = user.status.as_ref().and_then(|status| status.phase);
                if phases.last() != Some(&phase) {
                    phases.push(phase);
                }
                if condition(&user, "Ready").is_some_and(|found| found.0 == "True") && !asked {
                    asked = true;
                    env.delete("fox").await;
                }
            }
            WatchEvent::Deleted(_) => break,
            _ => {}
        }
    }
    let expected = [
        None,
        Some(Phase::Creating),
        Some(Phase::Ready),
        Some(Phase::Deleting),
    ];
    assert_eq!(phases, expected);
}
