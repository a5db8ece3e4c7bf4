//! The crash test finds an operator that is not crash-safe, and passes one that is.

use std::time::Duration;

use futures::FutureExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use stanchion_testkit::{
    cluster::Cluster,
    crash::{Scenario, crash_at_every_write, objects},
    faults::Faults,
    wait,
};

use crate::DEADLINE;

/// A small operator: it creates two objects, then a third one that marks the end.
struct TwoMaps {
    /// Whether it names its objects itself. If the server generates the names, the operator cannot know after a crash
    /// whether it has created them.
    named: bool,
}

impl TwoMaps {
    async fn work(&self, client: Client, namespace: &str) -> Result<(), kube::Error> {
        let maps: Api<ConfigMap> = Api::namespaced(client, namespace);
        for name in ["first", "second"] {
            let apply = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
            if self.named || name == "first" {
                maps.patch(name, &PatchParams::apply("toy"), &Patch::Apply(&apply))
                    .await?;
            } else {
                let mut map = ConfigMap::default();
                map.metadata.generate_name = Some("second-".to_owned());
                maps.create(&PostParams::default(), &map).await?;
            }
        }
        let done = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "report"},
            "data": {"done": "yes", "where": namespace},
        });
        maps.patch("report", &PatchParams::apply("toy"), &Patch::Apply(&done))
            .await
            .map(drop)
    }
}

impl Scenario for TwoMaps {
    type Run = String;

    async fn set_up(&self) -> String {
        Cluster::shared().await.namespace("crash").await
    }

    async fn operate(&self, namespace: &String, faults: Faults) {
        let client = faults.client(Cluster::shared().await.config().await);
        while self.work(client.clone(), namespace).await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        std::future::pending::<()>().await;
    }

    async fn converge(&self, namespace: &String) {
        let maps: Api<ConfigMap> = Api::namespaced(Cluster::shared().await.client().await, namespace);
        wait::until(&maps, "report", DEADLINE, |map| {
            map.data.as_ref().is_some_and(|data| data["done"] == "yes")
        })
        .await;
    }

    async fn end_state(&self, namespace: &String) -> Value {
        let mut maps = objects::<ConfigMap>(Cluster::shared().await.client().await, namespace).await;
        // The cluster itself creates it at some point.
        maps.as_object_mut().unwrap().remove("kube-root-ca.crt");
        maps
    }

    fn mask(&self, namespace: &String, text: &str) -> String {
        text.replace(namespace, "<namespace>")
    }
}

#[tokio::test]
async fn an_operator_that_applies_by_name_is_crash_proof() {
    let report = crash_at_every_write(&TwoMaps { named: true }).await;
    assert_eq!(
        (report.writes, report.crashes, report.unreached),
        (3, 7, 0),
        "{report}"
    );
}

#[tokio::test]
async fn an_operator_that_creates_blindly_is_caught() {
    let test = std::panic::AssertUnwindSafe(crash_at_every_write(&TwoMaps { named: false }));
    let panic = test
        .catch_unwind()
        .await
        .expect_err("a second object is made after a crash");
    let message = panic.downcast_ref::<String>().unwrap();
    assert!(message.contains("cut at write 2 (Unanswered)"), "{message}");
    assert!(message.contains("/create configmaps "), "{message}");
}
