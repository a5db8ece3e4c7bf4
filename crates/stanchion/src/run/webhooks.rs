//! The admission server of this replica, and its registration by the leader.

use std::sync::Arc;

use kube::Client;
use stanchion_kernel::admission::{
    Admission, AdmissionError, CertificateSource, Endpoint, FailurePolicy, Mounted, Registration,
    RegistrationSettings, SelfMade, Webhook,
};
use stanchion_kernel::redact::FingerprintKey;
use stanchion_kernel::scope::Scope;
use stanchion_kernel::telemetry::Metrics;
use stanchion_kernel::telemetry::guard::guarded;
use stanchion_kernel::telemetry::health::scraped;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::arguments::Arguments;

/// The Secret with the operator's own certificate.
pub(crate) const CERTIFICATE: &str = "stanchion-webhook-certificate";
/// The port of the Service in front of the operator's pods.
pub(crate) const SERVICE_PORT: u16 = 443;

/// The name of both webhook configurations. They are cluster-scoped, and another operator may run for other namespaces.
pub(crate) fn registration_name(operator_namespace: &str) -> String {
    format!("stanchion-{operator_namespace}")
}

/// A running admission server, as far as its registration needs it.
pub(super) struct Served {
    webhooks: Arc<[Webhook]>,
    settings: RegistrationSettings,
    ca_bundle: watch::Receiver<Option<String>>,
}

/// Starts to serve at paths that only holders of the key can compute, unless there are no webhooks or they are disabled.
pub(super) async fn serve(
    arguments: &Arguments,
    (client, metrics): (Client, Metrics),
    (namespace, key): (&str, &Arc<FingerprintKey>),
    servers: &mut JoinSet<()>,
    shutdown: &CancellationToken,
) -> Result<Option<Served>, AdmissionError> {
    let path = key.fingerprint("stanchion", "webhook-path", &[]);
    let scopes = Scope::from_namespaces(&arguments.namespace);
    let webhooks: Arc<[Webhook]> = arguments
        .controllers
        .rows()
        .flat_map(|row| (row.webhooks)(&client, &scopes, key))
        .map(|webhook| webhook.behind(&path))
        .collect();
    let flags = &arguments.admission;
    if flags.no_webhooks || webhooks.is_empty() {
        return Ok(None);
    }
    let endpoint = flags.webhook_url.clone().unwrap_or_else(|| Endpoint::Service {
        namespace: namespace.to_owned(),
        name: flags.webhook_service.clone(),
        port: SERVICE_PORT,
    });
    let source = match &flags.webhook_cert_dir {
        Some(folder) => CertificateSource::Mounted(Mounted::new(folder)),
        None => CertificateSource::SelfMade(SelfMade::new(namespace, CERTIFICATE, endpoint.names())),
    };
    let scraped = guarded(scraped(metrics), client.clone());
    let admission = Admission::start(client, flags.webhook_addr, source, Arc::clone(&webhooks))
        .await?
        .beside(scraped);
    let served = Served {
        webhooks,
        settings: RegistrationSettings {
            name: registration_name(namespace),
            endpoint,
            failure_policy: FailurePolicy::default(),
            namespaces: arguments.namespace.clone(),
        },
        ca_bundle: admission.ca_bundle(),
    };
    servers.spawn(admission.run(shutdown.clone()));
    Ok(Some(served))
}

impl Served {
    /// Registers the webhooks and keeps the registration up to date until shutdown.
    pub(super) async fn keep_registered(&self, client: Client, shutdown: CancellationToken) {
        Registration::new(client, self.settings.clone(), Arc::clone(&self.webhooks))
            .keep(self.ca_bundle.clone(), shutdown)
            .await;
    }
}
