//! What a user does with objects, and sees of them.

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::core::DynamicObject;
use serde_json::{Value, json};
use stanchion_api::GitlabInstance;
use stanchion_api::gitlab::Phase;
use stanchion_gitlab::storage::Buckets;
use stanchion_kernel::external::ExternalKind;

use super::TestEnv;

/// The reason and the message of `Ready`.
pub(crate) fn ready(instance: &GitlabInstance) -> (String, String) {
    let status = instance.status.clone().unwrap_or_default();
    let ready = status
        .conditions
        .iter()
        .find(|condition| condition.type_ == "Ready");
    ready.map_or_else(Default::default, |ready| {
        (ready.reason.clone(), ready.message.clone())
    })
}

/// A value of a Secret.
pub(crate) fn secret_text(secret: &Secret, key: &str) -> String {
    String::from_utf8(secret.data.as_ref().unwrap()[key].0.clone()).unwrap()
}

impl TestEnv {
    pub(crate) fn instances(&self) -> Api<GitlabInstance> {
        self.api()
    }

    pub(crate) fn secrets(&self) -> Api<Secret> {
        self.api()
    }

    /// Objects of a third-party kind, in its preferred version.
    pub(crate) fn external(&self, kind: &ExternalKind) -> Api<DynamicObject> {
        self.external_at(kind, kind.versions[0])
    }

    pub(crate) fn external_at(&self, kind: &ExternalKind, version: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), &self.namespace, &kind.at(version))
    }

    /// The Secrets of a provided database, Redis and buckets.
    pub(crate) async fn create_provided_secrets(&self) {
        self.secret(
            "pg",
            json!({ "host": "127.0.0.1", "port": "1", "password": "pg-canary" }),
        )
        .await;
        self.secret(
            "redis",
            json!({ "host": "redis.example.com", "port": "6379", "password": "redis-canary" }),
        )
        .await;
        self.secret("s3", buckets()).await;
    }

    /// Applies an instance on provided backends, with `more` merged into its spec.
    pub(crate) async fn instance(&self, name: &str, more: Value) -> GitlabInstance {
        let mut instance = json!({
            "apiVersion": "k8s.bnerd.com/v1alpha1", "kind": "GitlabInstance", "metadata": { "name": name },
            "spec": {
                "version": "17",
                "edition": "ce",
                "domains": { "gitlab": "git.example.com", "registry": "registry.example.com", "kas": "kas.example.com" },
                "postgres": { "managed": false, "credentialsSecret": "pg" },
                "redis": { "managed": false, "credentialsSecret": "redis" },
                "objectStorage": { "credentialsSecret": "s3" },
            },
        });
        json_patch::merge(&mut instance["spec"], &more);
        self.apply(name, &instance).await
    }

    /// The error of an instance that is refused when it is applied.
    pub(crate) async fn refused(&self, more: Value) -> String {
        let mut instance = json!({
            "apiVersion": "k8s.bnerd.com/v1alpha1", "kind": "GitlabInstance", "metadata": { "name": "refused" },
            "spec": {
                "domains": { "gitlab": "git.example.com" },
                "postgres": { "credentialsSecret": "pg" }, "redis": { "credentialsSecret": "redis" },
            },
        });
        json_patch::merge(&mut instance["spec"], &more);
        let applied = self.try_apply::<GitlabInstance>("refused", &instance).await;
        applied.unwrap_err().to_string()
    }

    /// Changes an instance's spec.
    pub(crate) async fn respec(&self, name: &str, fields: Value) -> GitlabInstance {
        self.patch(name, json!({ "spec": fields })).await
    }

    pub(crate) async fn delete(&self, name: &str) {
        self.base.delete::<GitlabInstance>(name).await;
    }

    /// Waits until an instance's status for the current generation satisfies a condition.
    pub(crate) async fn until(
        &self,
        name: &str,
        is_so: impl Fn(&GitlabInstance) -> bool + Send + Sync,
    ) -> GitlabInstance {
        let now = |instance: &GitlabInstance| {
            let status = instance.status.as_ref();
            status.is_some_and(|status| status.observed_generation == instance.metadata.generation)
                && is_so(instance)
        };
        self.wait().until(&self.instances(), name, now).await
    }

    /// Waits for a phase.
    pub(crate) async fn phase(&self, name: &str, phase: Phase) -> GitlabInstance {
        self.until(name, |instance| {
            instance.status.as_ref().unwrap().phase == Some(phase)
        })
        .await
    }

    /// Waits for a phase with this reason.
    pub(crate) async fn shows(&self, name: &str, phase: Phase, reason: &str) -> GitlabInstance {
        self.until(name, |instance| {
            instance.status.as_ref().unwrap().phase == Some(phase) && ready(instance).0 == reason
        })
        .await
    }
}

/// A complete Secret of buckets.
pub(crate) fn buckets() -> Value {
    let mut values = json!({
        "accessKey": "access-canary", "secretKey": "secret-canary",
        "endpoint": "https://s3.example.com", "region": "eu-1",
    });
    for class in Buckets::NAMES {
        values[format!("bucket.{class}")] = json!(format!("b-{class}"));
    }
    values
}
