//! The webhook between `kubectl apply` and the API server: the controller's own rules, and one object for each role.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use stanchion_kernel::Scope;
use stanchion_kernel::admission::{
    Admission, CertificateSource, Endpoint, FailurePolicy, Registration, RegistrationSettings, SelfMade,
    Webhook,
};
use stanchion_testkit::wait;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::bed::{Bed, PATIENCE, any, role_name};

/// Serves the webhook for one namespace until it is dropped.
struct Served {
    registration: Registration,
    _tasks: JoinSet<()>,
}

async fn serve(bed: &Bed) -> Served {
    let scopes = [Scope::Namespace(bed.namespace.clone())];
    let webhooks: Arc<[Webhook]> = stanchion_user::webhooks(&bed.client, &scopes).into();
    let source = SelfMade::new(&bed.namespace, "webhook", vec!["127.0.0.1".into()]);
    let admission = Admission::start(
        bed.client.clone(),
        SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        CertificateSource::SelfMade(source),
        Arc::clone(&webhooks),
    )
    .await
    .unwrap();
    let settings = RegistrationSettings {
        name: bed.namespace.clone(),
        endpoint: Endpoint::url(&format!("https://{}", admission.addr())).unwrap(),
        failure_policy: FailurePolicy::Fail,
        namespaces: vec![bed.namespace.clone()],
    };
    let registration = Registration::new(bed.client.clone(), settings, webhooks);
    let bundle = admission.ca_bundle().borrow().clone();
    let mut tasks = JoinSet::new();
    tasks.spawn(admission.run(CancellationToken::new()));
    registration.register(bundle.as_deref()).await.unwrap();
    Served {
        registration,
        _tasks: tasks,
    }
}

async fn apply(bed: &Bed, name: &str, spec: &Value) -> Result<(), String> {
    let user = json!({
        "apiVersion": "db.example.com/v1alpha1", "kind": "PostgresUser", "metadata": { "name": name }, "spec": spec,
    });
    let params = PatchParams::apply("test").force();
    let applied = bed.users().patch(name, &params, &Patch::Apply(&user)).await;
    applied.map(drop).map_err(|error| error.to_string())
}

fn spec(username: &str) -> Value {
    json!({ "username": username, "database": "app", "passwordSecretRef": { "name": "s" } })
}

/// C34 to C40 beyond what a schema can check; and two objects for one role are refused.
#[tokio::test]
async fn mistakes_are_told_at_the_door() {
    let bed = Bed::new(any()).await;
    let (role, wrong) = (
        role_name(),
        json!({ "name": "c", "template": { "k": "{{ .Nothing }}" } }),
    );
    let mut invalid = spec(&role);
    invalid["credentialsSecret"] = wrong;
    // Accepted before the webhook was registered.
    apply(&bed, "legacy", &invalid).await.unwrap();
    apply(&bed, "first", &spec("taken")).await.unwrap();
    let served = serve(&bed).await;

    invalid["username"] = json!("another");
    wait::eventually(PATIENCE, "the webhook to be asked", async || {
        match apply(&bed, "second", &invalid).await {
            Err(refused) if refused.contains("credentialsSecret.template.k") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    let refused = apply(&bed, "second", &spec("taken")).await.unwrap_err();
    let owner = format!(
        "role \"taken\" belongs to PostgresUser {}/first already",
        bed.namespace
    );
    assert!(refused.contains(&owner), "{refused}");
    let mut elsewhere = spec("taken");
    elsewhere["instanceRef"] = json!({ "name": "other" });
    apply(&bed, "second", &elsewhere).await.unwrap();

    // An existing error does not block other changes.
    bed.annotate("legacy", "a", "b").await;
    bed.patch("legacy", json!({ "spec": { "deletionPolicy": "Retain" } }))
        .await;
    // C39: the webhook is not called for deletions, also not if its server is gone.
    bed.patch("first", json!({ "metadata": { "finalizers": ["test.io/hold"] } }))
        .await;
    bed.delete("first").await;
    bed.patch("first", json!({ "metadata": { "finalizers": null } }))
        .await;
    bed.gone("first").await;
    apply(&bed, "third", &spec("taken")).await.unwrap();
    served.registration.unregister().await.unwrap();
}
