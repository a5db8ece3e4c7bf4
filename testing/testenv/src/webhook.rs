//! Webhooks that the API server calls.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use stanchion_kernel::admission::{
    Admission, CertificateSource, Endpoint, FailurePolicy, Registration, RegistrationSettings, SelfMade,
    Webhook,
};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::namespace::TestNamespace;

/// Webhooks for one namespace; they are no longer served once this is dropped.
pub struct ServedWebhooks {
    registration: Registration,
    _serving: AbortOnDropHandle<()>,
}

impl ServedWebhooks {
    /// Removes the registration.
    pub async fn unregister(self) {
        self.registration.unregister().await.unwrap();
    }
}

impl TestNamespace {
    /// Serves webhooks on loopback, and registers them for the objects of this namespace. An API server takes a moment
    /// until it calls a webhook that was just registered.
    pub async fn serve_webhooks(
        &self,
        webhooks: impl Into<Arc<[Webhook]>>,
        failure_policy: FailurePolicy,
    ) -> ServedWebhooks {
        let webhooks = webhooks.into();
        let source = SelfMade::new(&self.namespace, "webhook", vec!["127.0.0.1".into()]);
        let admission = Admission::start(
            self.client.clone(),
            SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            CertificateSource::SelfMade(source),
            Arc::clone(&webhooks),
        )
        .await
        .unwrap();
        let settings = RegistrationSettings {
            name: self.namespace.clone(),
            endpoint: Endpoint::url(&format!("https://{}", admission.addr())).unwrap(),
            failure_policy,
            namespaces: vec![self.namespace.clone()],
        };
        let registration = Registration::new(self.client.clone(), settings, webhooks);
        let bundle = admission.ca_bundle().borrow().clone();
        let serving = AbortOnDropHandle::new(tokio::spawn(admission.run(CancellationToken::new())));
        registration.register(bundle.as_deref()).await.unwrap();
        ServedWebhooks {
            registration,
            _serving: serving,
        }
    }
}
