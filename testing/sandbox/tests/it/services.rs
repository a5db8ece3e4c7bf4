//! Addresses and node ports of Services.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Service;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use stanchion_sandbox::Sandbox;

/// Creates a Service of the type `NodePort`, and returns its address and its port.
async fn create(sandbox: &Sandbox, name: &str, more: Value) -> (String, i32) {
    let mut service = json!({
        "metadata": { "name": name }, "spec": { "type": "NodePort", "ports": [{ "port": 80 }] },
    });
    for (field, value) in more.as_object().unwrap() {
        service["spec"][field] = value.clone();
    }
    let services: Api<Service> = Api::default_namespaced(sandbox.client());
    let service = serde_json::from_value(service).unwrap();
    let created = services.create(&PostParams::default(), &service).await.unwrap();
    let spec = created.spec.unwrap();
    (
        spec.cluster_ip.unwrap(),
        spec.ports.unwrap()[0].node_port.unwrap(),
    )
}

#[tokio::test(start_paused = true)]
async fn a_service_does_not_get_what_a_kept_one_has() {
    let folder = tempfile::tempdir().unwrap();
    let mut given = BTreeSet::new();
    for run in 0..3 {
        let sandbox = Sandbox::builder()
            .state(folder.path().join("state"))
            .start()
            .unwrap();
        for name in ["a", "b"] {
            given.insert(create(&sandbox, &format!("{name}-{run}"), json!({})).await);
        }
    }
    let addresses: BTreeSet<_> = given.iter().map(|(address, _)| address).collect();
    let ports: BTreeSet<_> = given.iter().map(|(_, port)| port).collect();
    assert_eq!((addresses.len(), ports.len()), (6, 6), "{given:?}");
}

#[tokio::test(start_paused = true)]
async fn a_service_does_not_get_what_another_one_asked_for() {
    let sandbox = Sandbox::builder().start().unwrap();
    let (first, port) = create(&sandbox, "first", json!({})).await;
    let (start, last) = first.rsplit_once('.').unwrap();
    let next = format!("{start}.{}", last.parse::<u32>().unwrap() + 1);
    let asked = json!({ "clusterIP": next, "ports": [{ "port": 80, "nodePort": port + 1 }] });
    assert_eq!(create(&sandbox, "asked", asked).await, (next.clone(), port + 1));
    let (address, number) = create(&sandbox, "after", json!({})).await;
    assert!(address != next && number != port + 1, "{address} {number}");
}
