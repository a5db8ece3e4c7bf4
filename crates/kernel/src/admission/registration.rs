//! Tells the API server about the webhooks, and keeps it told.

use std::{sync::Arc, time::Duration};

use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, Preconditions},
};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::{
    CHECK_EVERY, RegistrationSettings,
    configuration::{configuration, is_settled, resource},
    is_ours,
    webhook::{Stage, Webhook},
};

const FIELD_MANAGER: &str = "stanchion-admission";
const RETRY: Duration = Duration::from_secs(15);

/// Why the API server does not know the webhooks.
#[derive(Debug, thiserror::Error)]
pub enum RegistrationError {
    /// The name is taken.
    #[error(
        "a webhook configuration {name} exists and was not made by this operator; delete it, or choose another name"
    )]
    Foreign {
        /// The configuration's name.
        name: String,
    },
    /// The API server says no.
    #[error(transparent)]
    Api(#[from] kube::Error),
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
    pub async fn register(&self, ca_bundle: Option<&str>) -> Result<(), RegistrationError> {
        for stage in [Stage::Mutating, Stage::Validating] {
            let api = self.api(stage);
            match configuration(stage, &self.settings, &self.webhooks, ca_bundle) {
                None => self.remove(&api).await?,
                Some(wanted) => {
                    match api.get_opt(&self.settings.name).await? {
                        Some(found) if !is_ours(&found) => {
                            return Err(RegistrationError::Foreign {
                                name: self.settings.name.clone(),
                            });
                        }
                        Some(found) if is_settled(&found, &wanted) => continue,
                        _ => {}
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
    pub async fn unregister(&self) -> Result<(), RegistrationError> {
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
