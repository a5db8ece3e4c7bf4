//! A simulated Flux: each test sets its status.

use kube::api::{Patch, PatchParams};
use kube::core::DynamicObject;
use serde_json::{Value, json};
use stanchion_gitlab::flux::HELM_RELEASE;

use super::TestEnv;

impl TestEnv {
    /// Waits for the release of an instance.
    pub(crate) async fn release(&self, name: &str) -> DynamicObject {
        self.release_where(name, |_| true).await
    }

    /// Waits until the release requests this version of the chart.
    pub(crate) async fn release_of(&self, name: &str, chart: &str) -> DynamicObject {
        self.release_where(name, |release| {
            release.data.pointer("/spec/chart/spec/version") == Some(&json!(chart))
        })
        .await
    }

    /// Waits until the release satisfies a condition.
    pub(crate) async fn release_where(
        &self,
        name: &str,
        is_so: impl Fn(&DynamicObject) -> bool + Send,
    ) -> DynamicObject {
        let name = format!("{name}-gitlab");
        let (api, found) = (self.external(&HELM_RELEASE), std::cell::RefCell::new(None));
        self.wait()
            .eventually("the release", async || {
                let release = api.get_opt(&name).await.unwrap().filter(|release| is_so(release));
                found.replace(release).is_some() || found.borrow().is_some()
            })
            .await;
        found.into_inner().unwrap()
    }

    /// Asserts that the instance has no release.
    pub(crate) async fn no_release(&self, name: &str) {
        let found = self
            .external(&HELM_RELEASE)
            .get_opt(&format!("{name}-gitlab"))
            .await
            .unwrap();
        assert!(found.is_none(), "{found:?}");
    }

    /// Flux has installed the release.
    pub(crate) async fn installed(&self, name: &str, version: &str) {
        let release = self.release(name).await;
        let chart = release.data.pointer("/spec/chart/spec/version").cloned();
        let mut history = release
            .data
            .pointer("/status/history")
            .cloned()
            .unwrap_or_else(|| json!([]));
        let entry = json!({
            "chartVersion": chart, "appVersion": format!("v{version}"), "status": "deployed",
            "chartName": "gitlab", "name": name, "namespace": self.namespace, "version": 1, "digest": "sha256:0",
            "configDigest": "sha256:0", "firstDeployed": "2026-01-01T00:00:00Z", "lastDeployed": "2026-01-01T00:00:00Z",
        });
        history.as_array_mut().unwrap().insert(0, entry);
        self.says(
            &release,
            "True",
            "UpgradeSucceeded",
            "words of Flux",
            json!({
                "observedGeneration": release.metadata.generation, "history": history,
            }),
        )
        .await;
    }

    /// Flux has failed to install the release.
    pub(crate) async fn failed(&self, name: &str, reason: &str, message: &str) {
        let release = self.release(name).await;
        self.says(&release, "False", reason, message, json!({})).await;
    }

    /// Flux is installing the release.
    pub(crate) async fn works(&self, name: &str, message: &str) {
        let release = self.release(name).await;
        self.says(&release, "Unknown", "Progressing", message, json!({}))
            .await;
    }

    async fn says(
        &self,
        release: &DynamicObject,
        status: &str,
        reason: &str,
        message: &str,
        mut more: Value,
    ) {
        more["conditions"] = json!([{
            "type": "Ready", "status": status, "reason": reason, "message": message,
            "observedGeneration": release.metadata.generation, "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]);
        let patch = Patch::Merge(json!({ "status": more }));
        let name = release.metadata.name.as_deref().unwrap();
        let api = self.external(&HELM_RELEASE);
        api.patch_status(name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }
}
