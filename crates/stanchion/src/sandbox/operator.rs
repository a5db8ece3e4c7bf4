//! The operator in this process, started like `stanchion run`: with its own service account, the permissions that
//! `stanchion rbac` prints, and its webhooks.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::api::ApiServer;
use super::error::SandboxError;
use crate::controllers::Choice;
use crate::rbac::{self, NAMESPACE, SERVICE_ACCOUNT};
use crate::run::{self, RunError};

/// How long running passes may take to finish.
const ENDS_WITHIN: Duration = Duration::from_secs(20);

/// The objects that must exist before it starts, in addition to the CRDs.
pub(super) fn installation(controllers: &Choice) -> Result<Vec<Value>, SandboxError> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    let permissions =
        rbac::cluster_wide(controllers.clone()).map_err(|error| SandboxError::Manifest(error.to_string()))?;
    Ok([vec![namespace], permissions].concat())
}

/// The running operator.
pub(super) struct Operator {
    task: JoinHandle<Result<(), RunError>>,
    shutdown: CancellationToken,
    metrics: String,
}

impl Operator {
    /// Starts the operator.
    pub(super) async fn start(api: &ApiServer, controllers: &Choice) -> Result<Self, SandboxError> {
        let config = api.config_of(NAMESPACE, SERVICE_ACCOUNT).await?;
        let [metrics, webhooks] = [stanchion_local::port::free()?, stanchion_local::port::free()?];
        let names: Vec<&str> = controllers.rows().map(|row| row.name).collect();
        let arguments = run::Arguments::of_words(&[
            format!("--controllers={}", names.join(",")),
            format!("--operator-namespace={NAMESPACE}"),
            "--health-addr=127.0.0.1:0".to_owned(),
            format!("--metrics-addr=127.0.0.1:{metrics}"),
            format!("--webhook-addr=127.0.0.1:{webhooks}"),
            format!("--webhook-url=https://127.0.0.1:{webhooks}"),
        ])?;
        let shutdown = CancellationToken::new();
        let task = {
            let shutdown = shutdown.clone();
            tokio::spawn(async move { Box::pin(run::operate(&arguments, Some(config), shutdown)).await })
        };
        Ok(Self {
            task,
            shutdown,
            metrics: format!("http://127.0.0.1:{metrics}/metrics"),
        })
    }

    /// The address of its metrics.
    pub(super) fn metrics(&self) -> &str {
        &self.metrics
    }

    /// Waits for an unexpected end.
    pub(super) async fn ended(&mut self) -> SandboxError {
        match (&mut self.task).await {
            Ok(Ok(())) => RunError::Ended.into(),
            Ok(Err(error)) => error.into(),
            Err(panicked) => std::io::Error::other(panicked).into(),
        }
    }

    /// Stops the operator, and waits until running passes are finished.
    pub(super) async fn stop(mut self) {
        self.shutdown.cancel();
        if !self.task.is_finished() && timeout(ENDS_WITHIN, &mut self.task).await.is_err() {
            self.task.abort();
        }
    }
}
