//! An upgrade of the operator from version 89a1792, with a living GitLab: it is neither installed again nor changed,
//! and every password stays.

use std::collections::BTreeMap;

use kube::ResourceExt as _;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use stanchion_api::gitlab::{GitlabInstance, Phase};
use stanchion_gitlab::flux::{HELM_RELEASE, HELM_REPOSITORY};
use stanchion_kernel::apply::INTENT;

use crate::managed::stateful_set;
use crate::prepared::ACCOUNT;
use crate::test_env::TestEnv;

impl TestEnv {
    /// All Secrets of the namespace by name, with their values.
    async fn all_secrets(&self) -> BTreeMap<String, Value> {
        let list = self.secrets().list(&ListParams::default()).await.unwrap();
        let pair = |secret: k8s_openapi::api::core::v1::Secret| {
            (secret.name_any(), serde_json::to_value(secret.data).unwrap())
        };
        list.items.into_iter().map(pair).collect()
    }

    /// Flux installs every generation of the release until the instance is ready.
    async fn flux_follows(&self) -> GitlabInstance {
        self.wait()
            .eventually("the instance is ready", async || {
                let release = self.release("shop").await;
                let observed = release.data.pointer("/status/observedGeneration").cloned();
                if observed != release.metadata.generation.map(Value::from) {
                    self.installed("shop", "17.11.7").await;
                }
                let shop = self.instances().get("shop").await.unwrap();
                let phase = shop.status.as_ref().and_then(|status| status.phase);
                (phase == Some(Phase::Ready)).then_some(shop)
            })
            .await
    }

    /// Turns the objects of the release into those that version 89a1792 wrote: Flux installed with its own permissions,
    /// and the hash is of that intent.
    async fn former_release(&self) {
        let former = json!({
            "metadata": { "annotations": { INTENT: "0123456789abcdef" } },
            "spec": { "serviceAccountName": null },
        });
        self.external(&HELM_RELEASE)
            .patch("shop-gitlab", &PatchParams::default(), &Patch::Merge(&former))
            .await
            .unwrap();
        let params = DeleteParams::default();
        self.accounts().delete(ACCOUNT, &params).await.unwrap();
        self.bindings().delete(ACCOUNT, &params).await.unwrap();
    }
}

#[tokio::test]
async fn an_upgrade_breaks_no_login_and_installs_nothing_again() {
    let (env, operator) = TestEnv::operated().await;
    let managed = json!({ "redis": { "managed": true, "credentialsSecret": null } });
    env.instance("shop", managed).await;
    stateful_set(&env, "shop-redis", 1, "redis:7").await;
    env.flux_follows().await;
    operator.kill().await;
    env.former_release().await;
    let release = env.release("shop").await;
    assert_eq!(release.data.pointer("/spec/serviceAccountName"), None);
    let secrets = env.all_secrets().await;
    assert!(secrets.contains_key("shop-redis-auth"), "{:?}", secrets.keys());
    let repository = env.external(&HELM_REPOSITORY).get("shop-gitlab").await.unwrap();

    let _operator = env.operator().await;
    let confined = env
        .release_where("shop", |release| {
            release.data.pointer("/spec/serviceAccountName") == Some(&json!(ACCOUNT))
        })
        .await;
    assert_eq!(confined.uid(), release.uid(), "it is the same release");
    let mut spec = confined.data["spec"].clone();
    spec.as_object_mut().unwrap().remove("serviceAccountName");
    assert_eq!(spec, release.data["spec"], "nothing else changes");
    // Flux sees the account; for Helm it is the same release in the same version.
    let ready = env.flux_follows().await;
    assert_eq!(
        ready.status.unwrap().installed_version.as_deref(),
        Some("17.11.7")
    );
    assert_eq!(env.all_secrets().await, secrets, "every password stays");
    let after = env.external(&HELM_REPOSITORY).get("shop-gitlab").await.unwrap();
    assert_eq!(after.resource_version(), repository.resource_version());
}
