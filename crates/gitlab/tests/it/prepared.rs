//! States that several tests begin with.

use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use stanchion_api::gitlab::Phase;
use stanchion_gitlab::flux::HELM_RELEASE;

use crate::test_env::{Running, TestEnv};

/// The `ServiceAccount` of the instance `shop`, and its binding.
pub(crate) const ACCOUNT: &str = "shop-gitlab-release";

impl TestEnv {
    /// A running operator, and the Secrets of provided backends.
    pub(crate) async fn operated() -> (Self, Running) {
        let env = Self::new().await;
        let operator = env.operator().await;
        env.create_provided_secrets().await;
        (env, operator)
    }

    /// The instance `shop` in this version, which Flux has installed from this chart.
    pub(crate) async fn running(&self, version: &str, chart: &str) {
        self.instance("shop", json!({ "version": version })).await;
        self.release_of("shop", chart).await;
        self.installed("shop", version).await;
        self.phase("shop", Phase::Ready).await;
    }

    /// Like helm-controller: the finalizer holds the release of `shop` until it is uninstalled.
    pub(crate) async fn flux_holds_the_release(&self) {
        self.set_finalizers(json!(["finalizers.fluxcd.io"])).await;
    }

    /// Flux has uninstalled the release of `shop`.
    pub(crate) async fn flux_releases_it(&self) {
        self.set_finalizers(Value::Null).await;
    }

    async fn set_finalizers(&self, finalizers: Value) {
        let patch = Patch::Merge(json!({ "metadata": { "finalizers": finalizers } }));
        self.external(&HELM_RELEASE)
            .patch("shop-gitlab", &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    pub(crate) fn accounts(&self) -> Api<ServiceAccount> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub(crate) fn bindings(&self) -> Api<RoleBinding> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }
}
