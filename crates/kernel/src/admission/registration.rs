//! Registers the webhooks with the API server, and keeps the registration up to date.

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

/// Why the webhooks are not registered.
#[derive(Debug, thiserror::Error)]
pub enum RegistrationError {
    /// A configuration with this name exists and belongs to another owner.
    #[error(
        "a webhook configuration {name} exists and was not created by this operator; delete it, or choose another name"
    )]
    Foreign {
        /// The configuration's name.
        name: String,
    },
    /// The API server refused the request.
    #[error(transparent)]
    Api(#[from] kube::Error),
}

/// The registration of the webhooks. Only the leader should [`keep`](Self::keep) it, or two versions of the operator
/// would overwrite each other's registration during an upgrade. Needs [`super::cluster_rules`].
#[derive(Clone)]
pub struct Registration {
    client: Client,
    settings: RegistrationSettings,
    webhooks: Arc<[Webhook]>,
}

impl Registration {
    /// A registration that has written nothing yet.
    pub fn new(client: Client, settings: RegistrationSettings, webhooks: Arc<[Webhook]>) -> Self {
        Self {
            client,
            settings,
            webhooks,
        }
    }

    /// Registers now, again when the CA bundle changes, and again when the configuration was changed.
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
                    // Without a sender the bundle does not change any more; only the interval remains.
                    Ok(()) = ca_bundle.changed() => {}
                }
            }
        };
        shutdown.run_until_cancelled(forever).await;
    }

    /// Updates both configurations; writes nothing if they are up to date.
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

    /// Removes the webhooks, so that the API server does not call them any more.
    pub async fn unregister(&self) -> Result<(), RegistrationError> {
        for stage in [Stage::Mutating, Stage::Validating] {
            self.remove(&self.api(stage)).await?;
        }
        Ok(())
    }

    /// Deletes our configuration, but not one of another owner with the same name.
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
