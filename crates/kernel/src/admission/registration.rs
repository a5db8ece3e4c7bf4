//! Tells the API server about the webhooks, and keeps it told.

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, Preconditions},
};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::{
    CHECK_EVERY, Endpoint, is_ours,
    review::TIMEOUT,
    webhook::{Stage, Webhook},
};
use crate::watch::MANAGED_BY;

const FIELD_MANAGER: &str = "stanchion-admission";
const RETRY: Duration = Duration::from_secs(15);

/// What happens to a write when the admission server does not answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailurePolicy {
    /// It goes through, and the controller reports the mistake in the status.
    #[default]
    Ignore,
    /// It is refused. A mistake never gets in, and neither does anything else while we are away.
    Fail,
}

/// How the table is registered.
#[derive(Clone, Debug)]
pub struct RegistrationSettings {
    /// The name of both configurations.
    pub name: String,
    /// Where the admission server is.
    pub endpoint: Endpoint,
    /// What happens when it does not answer.
    pub failure_policy: FailurePolicy,
    /// The namespaces that the operator looks after; none means all.
    pub namespaces: Vec<String>,
}

/// The registration of one table. Only the leader should [`keep`](Self::keep) it, or two versions
/// of the operator would overwrite each other's table during an upgrade. Needs [`super::cluster_rules`].
#[derive(Clone)]
pub struct Registration {
    client: Client,
    settings: RegistrationSettings,
    webhooks: Arc<[Webhook]>,
}

impl Registration {
    /// Nothing is written yet.
    pub fn new(client: Client, settings: RegistrationSettings, webhooks: Arc<[Webhook]>) -> Self {
        Self {
            client,
            settings,
            webhooks,
        }
    }

    /// Registers now, again when the authorities change, and again when somebody changed it.
    pub async fn keep(&self, mut ca_bundle: watch::Receiver<Option<String>>, shutdown: CancellationToken) {
        let forever = async {
            loop {
                let bundle = ca_bundle.borrow_and_update().clone();
                let pause = match self.register(bundle.as_deref()).await {
                    Ok(()) => CHECK_EVERY,
                    Err(error) => {
                        warn!(name = self.settings.name, %error, "cannot register the webhooks");
                        RETRY
                    }
                };
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    // Without a sender nothing changes any more; the pause is what is left.
                    Ok(()) = ca_bundle.changed() => {}
                }
            }
        };
        shutdown.run_until_cancelled(forever).await;
    }

    /// Makes both configurations what they should be; writes nothing when they are.
    pub async fn register(&self, ca_bundle: Option<&str>) -> Result<(), kube::Error> {
        for stage in [Stage::Mutating, Stage::Validating] {
            let api = self.api(stage);
            match configuration(stage, &self.settings, &self.webhooks, ca_bundle) {
                None => self.remove(&api).await?,
                Some(wanted) => {
                    let found = api.get_opt(&self.settings.name).await?;
                    if found.is_some_and(|found| is_settled(&found, &wanted)) {
                        continue;
                    }
                    let params = PatchParams::apply(FIELD_MANAGER).force();
                    api.patch(&self.settings.name, &params, &Patch::Apply(&wanted))
                        .await?;
                    info!(
                        name = self.settings.name,
                        stage = stage.verb(),
                        "webhooks registered"
                    );
                }
            }
        }
        Ok(())
    }

    /// Takes the webhooks away, so that the API server asks nobody.
    pub async fn unregister(&self) -> Result<(), kube::Error> {
        for stage in [Stage::Mutating, Stage::Validating] {
            self.remove(&self.api(stage)).await?;
        }
        Ok(())
    }

    /// Deletes what we made, and nothing that somebody else gave the same name.
    async fn remove(&self, api: &Api<DynamicObject>) -> Result<(), kube::Error> {
        let Some(found) = api.get_opt(&self.settings.name).await? else {
            return Ok(());
        };
        if !is_ours(&found) {
            return Ok(());
        }
        let same = Preconditions {
            uid: found.uid(),
            resource_version: None,
        };
        match api
            .delete(&self.settings.name, &DeleteParams::default().preconditions(same))
            .await
        {
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            result => result.map(|_| ()),
        }
    }

    fn api(&self, stage: Stage) -> Api<DynamicObject> {
        Api::all_with(self.client.clone(), &resource(stage))
    }
}

fn resource(stage: Stage) -> ApiResource {
    match stage {
        Stage::Mutating => ApiResource::erase::<MutatingWebhookConfiguration>(&()),
        Stage::Validating => ApiResource::erase::<ValidatingWebhookConfiguration>(&()),
    }
}

/// The configuration of one stage, or `None` when the table has nothing for it.
fn configuration(
    stage: Stage,
    settings: &RegistrationSettings,
    webhooks: &[Webhook],
    ca_bundle: Option<&str>,
) -> Option<Value> {
    let rows: Vec<Value> = webhooks
        .iter()
        .filter(|webhook| webhook.stage == stage)
        .map(|webhook| row(webhook, settings, ca_bundle))
        .collect();
    let ApiResource {
        api_version, kind, ..
    } = resource(stage);
    (!rows.is_empty()).then(|| {
        json!({
            "apiVersion": api_version,
            "kind": kind,
            "metadata": { "name": settings.name, "labels": { MANAGED_BY.0: MANAGED_BY.1 } },
            "webhooks": rows,
        })
    })
}

fn row(webhook: &Webhook, settings: &RegistrationSettings, ca_bundle: Option<&str>) -> Value {
    let target = &webhook.target;
    let operations: Vec<&str> = target
        .operations
        .iter()
        .map(|operation| operation.as_str())
        .collect();
    let mut row = json!({
        "name": webhook.name(),
        "clientConfig": settings.endpoint.client_config(&webhook.path(), ca_bundle),
        "rules": [{
            "apiGroups": [target.group],
            "apiVersions": [target.version],
            "resources": [target.plural],
            "operations": operations,
            "scope": "*",
        }],
        "failurePolicy": match settings.failure_policy {
            FailurePolicy::Ignore => "Ignore",
            FailurePolicy::Fail => "Fail",
        },
        "matchPolicy": "Equivalent",
        "matchConditions": [{
            "name": "not-going",
            "expression": "!has(object.metadata.deletionTimestamp)",
        }],
        "sideEffects": "None",
        "timeoutSeconds": TIMEOUT.as_secs(),
        "admissionReviewVersions": ["v1"],
    });
    if !settings.namespaces.is_empty()
        && let Some(fields) = row.as_object_mut()
    {
        let ours =
            json!({ "key": "kubernetes.io/metadata.name", "operator": "In", "values": settings.namespaces });
        fields.insert("namespaceSelector".into(), json!({ "matchExpressions": [ours] }));
    }
    row
}

/// Whether everything that we want is there. What the API server defaults, and what others add to
/// fields that are not ours, does not count.
fn is_settled(found: &DynamicObject, wanted: &Value) -> bool {
    let webhooks = |value: &Value| value.get("webhooks").cloned().unwrap_or_default();
    is_ours(found) && covers(&webhooks(&found.data), &webhooks(wanted))
}

fn covers(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => wanted
            .iter()
            .all(|(key, wanted)| found.get(key).is_some_and(|found| covers(found, wanted))),
        (Value::Array(found), Value::Array(wanted)) => {
            found.len() == wanted.len()
                && found
                    .iter()
                    .zip(wanted)
                    .all(|(found, wanted)| covers(found, wanted))
        }
        _ => found == wanted,
    }
}
