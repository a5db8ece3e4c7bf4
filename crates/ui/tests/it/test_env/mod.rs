//! A page on a namespace of its own, and a client that behaves like a browser.

mod client;

use std::ops::Deref;

use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use serde_json::{Value, json};
use stanchion_fleet::cluster::Cluster as Read;
use stanchion_testenv::TestNamespace;
use stanchion_ui::Server;

pub(crate) use client::Browser;

pub(crate) struct TestEnv {
    pub(crate) base: TestNamespace,
}

impl Deref for TestEnv {
    type Target = TestNamespace;

    fn deref(&self) -> &TestNamespace {
        &self.base
    }
}

impl TestEnv {
    pub(crate) async fn new(name: &str) -> Self {
        let base = TestNamespace::new(name).await;
        base.cluster.install_crds(stanchion_api::crds()).await;
        Self { base }
    }

    /// A page with all permissions.
    pub(crate) async fn open(&self) -> Browser {
        self.open_as(self.cluster.client().await).await
    }

    /// A page with the permissions of this client.
    pub(crate) async fn open_as(&self, client: kube::Client) -> Browser {
        let cluster = Read {
            client,
            url: "https://cluster.example:6443".to_owned(),
            namespace: Some(self.namespace.clone()),
        };
        let server = Server::start(cluster, 0).await.unwrap();
        Browser::enter(server).await
    }

    pub(crate) async fn apply(&self, object: &Value) {
        self.cluster.apply(&object.to_string(), &self.namespace).await;
    }

    pub(crate) fn api(
        &self,
        client: kube::Client,
        group: &str,
        kind: &str,
        plural: &str,
    ) -> Api<DynamicObject> {
        let gvk = GroupVersionKind::gvk(group, "v1alpha1", kind);
        let resource = ApiResource::from_gvk_with_plural(&gvk, plural);
        Api::namespaced_with(client, &self.namespace, &resource)
    }

    /// Replaces parts of a status, as an operator would.
    pub(crate) async fn report(&self, api: &Api<DynamicObject>, name: &str, status: &Value) {
        let patch = Patch::Merge(json!({ "status": status }));
        api.patch_status(name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }
}

pub(crate) fn user(name: &str) -> Value {
    json!({
        "apiVersion": "db.example.com/v1alpha1", "kind": "PostgresUser", "metadata": { "name": name },
        "spec": { "username": name.replace('-', "_"), "database": "none", "privileges": ["CONNECT"], "password": { "generate": {} } },
    })
}
