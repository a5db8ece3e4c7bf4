//! The admission server: reports a mistake when the object is applied, and not a minute later in the status.
//!
//! The operator is complete without it. The controller checks every rule of a webhook again, so the webhooks are
//! registered in a way that never blocks a write:
//!
//! - `failurePolicy: Ignore`. If the server is down, slow or broken, the write succeeds, and the controller reports the
//!   mistake in the status. (`Fail` is optional.)
//! - Only CREATE and UPDATE are registered, and objects that are being deleted are excluded: a rule can block neither a
//!   DELETE nor the removal of a finalizer.
//! - A short timeout, no side effects, and only the main resource: status writes are not reviewed.
//!
//! | part | what it does | where it runs |
//! |---|---|---|
//! | [`Webhook`] | one row of the table: which resource, which rule | |
//! | [`Admission`] | serves the table over HTTPS and keeps the certificate fresh | every replica |
//! | [`Registration`] | writes the webhook configurations | the leader |

mod budget;
mod certificates;
mod configuration;
mod endpoint;
mod lookup;
mod registration;
mod review;
mod server;
mod validation;
mod webhook;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::Router;
use kube::{Client, ResourceExt};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

pub use certificates::{CertificateError, CertificateSource, Mounted, SelfMade};
pub use configuration::{FailurePolicy, RegistrationSettings};
pub use endpoint::{Endpoint, EndpointError};
pub use lookup::{Lookup, Unseen};
pub use registration::{Registration, RegistrationError};
pub use validation::validation;
pub use webhook::{Denial, Operation, Request, Webhook, WebhookTarget};

use crate::{rbac::Rule, watch::MANAGED_BY};
use certificates::{Loader, Material, Serving};
use server::Server;

/// How often the configuration in the cluster is compared with the wanted one.
const CHECK_EVERY: Duration = Duration::from_mins(5);

/// Why the admission server did not start.
#[derive(Debug, thiserror::Error)]
pub enum AdmissionError {
    /// The address is in use, or not available.
    #[error(
        "cannot listen for webhooks on {addr}: {source}; choose another --webhook-addr or use --no-webhooks"
    )]
    Listen {
        /// The requested address.
        addr: SocketAddr,
        /// The error of the system.
        source: std::io::Error,
    },
    /// There is no certificate to serve.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
}

/// The server of one replica, with a certificate, listening.
pub struct Admission {
    server: Server,
    loader: Loader,
    serving: Arc<Serving>,
    ca_bundle: watch::Sender<Option<String>>,
}

impl Admission {
    /// Obtains a certificate and starts to listen; [`run`](Self::run) answers the requests.
    ///
    /// `client` has no fence: replicas that are not the leader serve too, and any of them may write the Secret.
    pub async fn start(
        client: Client,
        addr: SocketAddr,
        source: CertificateSource,
        webhooks: Arc<[Webhook]>,
    ) -> Result<Self, AdmissionError> {
        let loader = Loader::new(client, source);
        let Material { key, ca_bundle } = loader.load().await?;
        let serving = Arc::new(Serving::new(key));
        let server = Server::bind(addr, webhooks, serving.clone())
            .await
            .map_err(|source| AdmissionError::Listen { addr, source })?;
        info!(addr = %server.addr(), "admission server listens");
        Ok(Self {
            server,
            loader,
            serving,
            ca_bundle: watch::Sender::new(ca_bundle),
        })
    }

    /// Serves additional routes with the same certificate.
    #[must_use]
    pub fn beside(mut self, router: Router) -> Self {
        self.server.add(router);
        self
    }

    /// The address that it listens on, with the actual port.
    pub fn addr(&self) -> SocketAddr {
        self.server.addr()
    }

    /// The CA bundle for the API server, as it changes. `None`: the operator does not set it.
    pub fn ca_bundle(&self) -> watch::Receiver<Option<String>> {
        self.ca_bundle.subscribe()
    }

    /// Serves until `shutdown`, and refreshes the certificate without a restart.
    pub async fn run(self, shutdown: CancellationToken) {
        let Self {
            server,
            loader,
            serving,
            ca_bundle,
        } = self;
        let refresh = async {
            loop {
                tokio::time::sleep(loader.check_every()).await;
                match loader.load().await {
                    Ok(Material {
                        key,
                        ca_bundle: bundle,
                    }) => {
                        serving.install(key);
                        ca_bundle.send_if_modified(|known| {
                            let changed = *known != bundle;
                            *known = bundle;
                            changed
                        });
                    }
                    // The served certificate is valid for weeks.
                    Err(error) => warn!(%error, "cannot refresh the webhooks' certificate"),
                }
            }
        };
        tokio::select! {
            () = server.serve(shutdown) => {}
            () = refresh => {}
        }
    }
}

/// Whether the operator created this object.
fn is_ours(object: &impl ResourceExt) -> bool {
    object.labels().get(MANAGED_BY.0).map(String::as_str) == Some(MANAGED_BY.1)
}

/// The RBAC rules of [`Admission`] in the operator's own namespace, if it creates its certificate itself.
pub fn namespace_rules() -> Vec<Rule> {
    vec![Rule::new("", &["secrets"], &["get", "create", "update"])]
}

/// The RBAC rules of [`Registration`] in the cluster.
pub fn cluster_rules() -> Vec<Rule> {
    let both = ["validatingwebhookconfigurations", "mutatingwebhookconfigurations"];
    let verbs = &["get", "create", "patch", "delete"];
    vec![Rule::new("admissionregistration.k8s.io", &both, verbs).cluster_wide()]
}
