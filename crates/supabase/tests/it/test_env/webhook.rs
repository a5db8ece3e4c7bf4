//! The webhook, called by the API server.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use stanchion_kernel::Scope;
use stanchion_kernel::admission::{
    Admission, CertificateSource, Endpoint, FailurePolicy, Registration, RegistrationSettings, SelfMade,
    Webhook,
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::TestEnv;

/// A webhook for one namespace; it is no longer served once this is dropped.
pub(crate) struct Served {
    registration: Registration,
    _tasks: JoinSet<()>,
}

impl Served {
    /// Removes the registration.
    pub(crate) async fn unregister(self) {
        self.registration.unregister().await.unwrap();
    }
}

/// Registers the webhook for the namespace of the test, and serves it.
pub(crate) async fn serve(env: &TestEnv) -> Served {
    let scopes = [Scope::Namespace(env.namespace.clone())];
    let webhooks: Arc<[Webhook]> = stanchion_supabase::webhooks(&env.client, &scopes).into();
    let source = SelfMade::new(&env.namespace, "webhook", vec!["127.0.0.1".into()]);
    let admission = Admission::start(
        env.client.clone(),
        SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        CertificateSource::SelfMade(source),
        Arc::clone(&webhooks),
    )
    .await
    .unwrap();
    let settings = RegistrationSettings {
        name: env.namespace.clone(),
        endpoint: Endpoint::url(&format!("https://{}", admission.addr())).unwrap(),
        failure_policy: FailurePolicy::Fail,
        namespaces: vec![env.namespace.clone()],
    };
    let registration = Registration::new(env.client.clone(), settings, webhooks);
    let bundle = admission.ca_bundle().borrow().clone();
    let mut tasks = JoinSet::new();
    tasks.spawn(admission.run(CancellationToken::new()));
    registration.register(bundle.as_deref()).await.unwrap();
    Served {
        registration,
        _tasks: tasks,
    }
}
