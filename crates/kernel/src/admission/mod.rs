//! The admission server: tells people about a mistake when they apply it, and not a minute later.
//!
//! The operator is complete without it. Every rule that a webhook checks is checked again by the
//! controller, so the webhooks are registered in a way that can never stand in anybody's way:
//!
//! - `failurePolicy: Ignore`. If the server is away, slow or broken, the write goes through, and the
//!   controller reports the mistake in the status. (`Fail` can be asked for.)
//! - Only CREATE and UPDATE can be registered, and objects that are being deleted are excluded: a
//!   rule can neither block a DELETE nor the removal of a finalizer.
//! - A short timeout, no side effects, and only the main resource: status writes are not reviewed.
//!
//! | part | what it does | where it runs |
//! |---|---|---|
//! | [`Webhook`] | one row of the table: which resource, which rule | |
//! | [`Admission`] | serves the table over HTTPS and keeps the certificate fresh | every replica |
//! | [`Registration`] | tells the API server about the table | the leader |

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
pub use webhook::{Denial, Operation, Request, Target, Webhook};

use crate::{rbac::Rule, watch::MANAGED_BY};
use certificates::{Loader, Material, Serving};
use server::Server;

/// How often what should be in the cluster is compared with what is.
const CHECK_EVERY: Duration = Duration::from_mins(5);

/// Why there is no admission server.
#[derive(Debug, thiserror::Error)]
pub enum AdmissionError {
    /// The address is taken, or not ours.
    #[error(
        "cannot listen for webhooks on {addr}: {source}; choose another --webhook-addr or use --no-webhooks"
    )]
    Listen {
        /// The address that was asked for.
        addr: SocketAddr,
        /// What the system says.
        source: std::io::Error,
    },
    /// No certificate to serve with.
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
    /// Obtains a certificate and starts to listen; requests are answered by [`run`](Self::run).
    ///
    /// `client` is one without a fence: replicas that do not lead serve too, and the Secret is safe
    /// to be written by any of them.
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

    /// Answers these requests, too, with the same certificate.
    #[must_use]
    pub fn beside(mut self, router: Router) -> Self {
        self.server.add(router);
        self
    }

    /// Where it listens, also when the port was left to the system.
    pub fn addr(&self) -> SocketAddr {
        self.server.addr()
    }

    /// The authorities that the API server must trust, as they change. `None`: not ours to say.
    pub fn ca_bundle(&self) -> watch::Receiver<Option<String>> {
        self.ca_bundle.subscribe()
    }

    /// Serves until `shutdown`, and meanwhile keeps the certificate fresh without a restart.
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
                    // The one that is being served is good for weeks.
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

/// Whether the operator made this object.
fn is_ours(object: &impl ResourceExt) -> bool {
    object.labels().get(MANAGED_BY.0).map(String::as_str) == Some(MANAGED_BY.1)
}

/// What [`Admission`] may do in the operator's own namespace, if it makes its certificate itself.
pub fn namespace_rules() -> Vec<Rule> {
    vec![Rule::new("", &["secrets"], &["get", "create", "update"])]
}

/// What [`Registration`] may do in the cluster.
pub fn cluster_rules() -> Vec<Rule> {
    let both = ["validatingwebhookconfigurations", "mutatingwebhookconfigurations"];
    let verbs = &["get", "create", "patch", "delete"];
    vec![Rule::new("admissionregistration.k8s.io", &both, verbs).cluster_wide()]
}
