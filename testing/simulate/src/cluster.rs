//! The API server of a run, as its administrator.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Map, Value, json};
use stanchion_sandbox::Sandbox;
use tokio::time::sleep;

use crate::replica::LEASE;
use crate::scenario::{NAMESPACE, Scenario};
use crate::user;

/// How many changes of a kind can be watched from the past. A change keeps two states of its object, and hours of fuzzing make
/// a hundred thousand.
const HISTORY: usize = 1000;

/// Starts one that serves the scenario's kinds.
pub(crate) async fn start<S: Scenario>(seed: u64, wall: Timestamp) -> Sandbox {
    let sandbox = Sandbox::builder()
        .seed(seed)
        .clock(wall)
        .rbac(false)
        .history(HISTORY)
        .workloads(S::PODS)
        .start()
        .expect("a sandbox");
    furnish::<S>(&sandbox.client()).await;
    sandbox
}

/// Serves the scenario's kinds, and makes its namespace.
pub(crate) async fn furnish<S: Scenario>(client: &Client) {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    for definition in S::definitions() {
        let created = definitions.create(&PostParams::default(), &definition).await;
        created.unwrap_or_else(|error| panic!("{}: {error}", definition.name_any()));
    }
    let namespace: Namespace =
        serde_json::from_value(json!({ "metadata": { "name": NAMESPACE } })).expect("a namespace");
    let namespaces: Api<Namespace> = Api::all(client.clone());
    namespaces
        .create(&PostParams::default(), &namespace)
        .await
        .expect("a namespace");
    for kind in S::PRIMARY {
        while user::api(client, kind)
            .list(&ListParams::default())
            .await
            .is_err()
        {
            sleep(Duration::from_millis(100)).await;
        }
    }
}

/// The names of objects.
pub(crate) async fn names(objects: &Api<DynamicObject>) -> Vec<String> {
    let listed = objects.list(&ListParams::default()).await.expect("a list");
    listed.items.iter().map(kube::ResourceExt::name_any).collect()
}

/// Everything that belongs to the scenario: by kind, by name.
pub(crate) async fn objects<S: Scenario>(client: &Client) -> Map<String, Value> {
    let mut all = Map::new();
    for kind in S::PRIMARY.iter().chain(S::OTHERS) {
        let objects = user::api(client, kind);
        let listed = objects.list(&ListParams::default()).await.expect("a list");
        let by_name = |object: &DynamicObject| {
            (
                object.name_any(),
                serde_json::to_value(object).expect("an object is JSON"),
            )
        };
        let mut objects: Map<String, Value> = listed.items.iter().map(by_name).collect();
        // The cluster's own, which comes sooner or later.
        objects.shift_remove("kube-root-ca.crt");
        all.insert(kind.kind.to_owned(), objects.into());
    }
    all
}

/// No watch can be resumed from before now.
pub(crate) async fn forget_history(sandbox: &Sandbox) {
    // Something has to happen, or the newest version that watches know of is the newest that there is.
    let namespaces: Api<Namespace> = Api::all(sandbox.client());
    let now = json!({ "metadata": { "annotations": { "simulated": stanchion_kernel::ambient::bits().to_string() } } });
    let touched = namespaces
        .patch("default", &PatchParams::default(), &Patch::Merge(now))
        .await;
    touched.expect("the namespace default");
    sandbox.compact();
}

/// Writes another holder into the Lease, if there is one. Says whether there is.
pub(crate) async fn steal_lease(sandbox: &Sandbox) -> bool {
    let leases: Api<Lease> = Api::namespaced(sandbox.client(), NAMESPACE);
    let thief = json!({ "spec": { "holderIdentity": "a-thief", "leaseDurationSeconds": 30 } });
    leases
        .patch(LEASE, &PatchParams::default(), &Patch::Merge(thief))
        .await
        .is_ok()
}
