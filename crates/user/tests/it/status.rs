//! The contents of the status, when they change, and who may write it.

use futures::StreamExt;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams, WatchEvent, WatchParams};
use kube::{Api, CustomResourceExt};
use serde_json::{Value, json};
use stanchion_api::PostgresUser;
use stanchion_api::user::Phase;
use stanchion_testkit::cluster::{Grant, rule};

use super::bed::{Bed, any, condition, role_name};

/// C25: conditions are a map by type: those of another writer survive our writes, and ours survive theirs.
#[tokio::test]
async fn conditions_of_others_live_beside_ours() {
    let crd = serde_json::to_value(PostgresUser::crd()).unwrap();
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"];
    let conditions = &schema["properties"]["conditions"];
    assert_eq!(conditions["x-kubernetes-list-type"], "map");
    assert_eq!(conditions["x-kubernetes-list-map-keys"], json!(["type"]));

    let bed = Bed::new(any()).await;
    let role = role_name();
    let _operator = bed.operator().await;
    bed.password("bea", "secret").await;
    bed.user("bea", &role, json!({})).await;
    bed.ready("bea").await;
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
    bed.users().patch_status("bea", &params, &patch).await.unwrap();
    bed.user("bea", &role, json!({ "role": { "connectionLimit": 2 } }))
        .await;
    let user = bed.ready("bea").await;
    let types: Vec<String> = user
        .status
        .unwrap()
        .conditions
        .into_iter()
        .map(|found| found.type_)
        .collect();
    assert!(types.contains(&"Audited".to_owned()), "{types:?}");
    let twice = Patch::Apply(status(json!([theirs, theirs])));
    assert!(bed.users().patch_status("bea", &params, &twice).await.is_err());
}

/// C26, A24: a client that waits for Ready after an edit waits for the edit.
#[tokio::test]
async fn ready_is_never_said_of_an_older_spec() {
    let bed = Bed::new(any()).await;
    let role = role_name();
    let _operator = bed.operator().await;
    bed.password("cid", "secret").await;
    bed.user("cid", &role, json!({})).await;
    bed.ready("cid").await;
    let limit = format!("SELECT rolconnlimit FROM pg_roles WHERE rolname = '{role}'");
    for n in 1..4 {
        bed.user("cid", &role, json!({ "role": { "connectionLimit": n } }))
            .await;
        // As `kubectl wait` does: True, and not for an older generation if the condition has one.
        bed.until("cid", |user| {
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
        assert_eq!(bed.server_one(&limit).await, n.to_string());
    }
}

/// C27, C30, C32: values are stable: times change only when something happens, and the spec is never written.
#[tokio::test]
async fn times_move_only_when_something_happens() {
    let bed = Bed::new(any()).await;
    let role = role_name();
    let operator = bed.operator().await;
    bed.password("dot", "secret").await;
    bed.user("dot", &role, json!({})).await;
    let first = bed.ready("dot").await;
    let before = first.status.clone().unwrap();
    for _ in 0..3 {
        bed.look_again(&operator, "dot").await;
    }
    let touched = bed.users().get("dot").await.unwrap();
    assert_eq!(touched.status.as_ref(), Some(&before));
    bed.user("dot", &role, json!({ "role": { "connectionLimit": 5 } }))
        .await;
    let edited = bed.ready("dot").await;
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
async fn the_status_has_its_own_door() {
    let bed = Bed::new(any()).await;
    let role = role_name();
    let _operator = bed.operator().await;
    bed.password("edy", "secret").await;
    bed.user("edy", &role, json!({})).await;
    let before = bed.ready("edy").await.status;
    bed.patch(
        "edy",
        json!({ "status": { "phase": "Failed", "created": false } }),
    )
    .await;
    assert_eq!(bed.users().get("edy").await.unwrap().status, before);
    let rules = vec![rule("db.example.com", &["postgresusers"], &["get", "patch"])];
    let user = bed
        .cluster
        .user(
            &bed.namespace,
            "guest",
            &[Grant::In(bed.namespace.clone(), rules)],
        )
        .await;
    let users: Api<PostgresUser> = Api::namespaced(user.client().await, &bed.namespace);
    let patch = Patch::Merge(json!({ "status": { "phase": "Failed" } }));
    let refused = users
        .patch_status("edy", &PatchParams::default(), &patch)
        .await
        .unwrap_err();
    assert!(matches!(refused, kube::Error::Api(status) if status.code == 403));
    let crds: Api<CustomResourceDefinition> = Api::all(bed.client.clone());
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
async fn a_life_has_its_phases_in_order() {
    let bed = Bed::new(any()).await;
    let role = role_name();
    let users = bed.users();
    let params = WatchParams::default().fields("metadata.name=fox");
    let mut events = users.watch(&params, "0").await.unwrap().boxed();
    let _operator = bed.operator().await;
    bed.password("fox", "secret").await;
    bed.user("fox", &role, json!({})).await;
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
                    bed.delete("fox").await;
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
