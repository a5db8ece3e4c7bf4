//! The admission server, called by a real API server by URL.
//!
//! Every test registers for Leases in its own namespace, with `Fail`: a missing answer would be an error, and not be
//! silently ignored.

mod lookup;
mod rotation;
mod server;
mod tls;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use k8s_openapi::api::{
    admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration},
    coordination::v1::Lease,
    core::v1::Secret,
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::json;
use stanchion_kernel::{
    admission::{
        self, Admission, CertificateError, CertificateSource, Denial, Endpoint, FailurePolicy, Registration,
        RegistrationError, RegistrationSettings, SelfMade, Webhook, WebhookTarget,
    },
    rbac,
};
use stanchion_testkit::{
    cluster::{Cluster, Grant},
    wait,
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

const DEADLINE: Duration = Duration::from_secs(30);
const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

/// One replica of an operator with webhooks, until it is dropped.
struct Replica {
    registration: Registration,
    ca_bundle: tokio::sync::watch::Receiver<Option<String>>,
    addr: SocketAddr,
    _serving: AbortOnDropHandle<()>,
}

impl Replica {
    async fn start(client: Client, namespace: &str, webhooks: &[Webhook]) -> Self {
        Self::with(client, self_made(namespace), namespace, webhooks).await
    }

    async fn with(client: Client, made: SelfMade, namespace: &str, webhooks: &[Webhook]) -> Self {
        let webhooks: Arc<[Webhook]> = webhooks.into();
        let source = CertificateSource::SelfMade(made);
        let admission = Admission::start(client.clone(), LOOPBACK, source, webhooks.clone())
            .await
            .unwrap();
        let (addr, ca_bundle) = (admission.addr(), admission.ca_bundle());
        let settings = RegistrationSettings {
            name: namespace.to_owned(),
            endpoint: Endpoint::url(&format!("https://{addr}")).unwrap(),
            failure_policy: FailurePolicy::Fail,
            namespaces: vec![namespace.to_owned()],
        };
        let serving = tokio::spawn(admission.run(CancellationToken::new()));
        Self {
            registration: Registration::new(client, settings, webhooks),
            ca_bundle,
            addr,
            _serving: AbortOnDropHandle::new(serving),
        }
    }

    fn bundle(&self) -> String {
        self.ca_bundle.borrow().clone().unwrap()
    }

    async fn register(&self) {
        self.registration.register(Some(&self.bundle())).await.unwrap();
    }
}

fn self_made(namespace: &str) -> SelfMade {
    SelfMade {
        check_every: Duration::from_millis(50),
        ..SelfMade::new(namespace, "webhook-certificate", vec!["127.0.0.1".into()])
    }
}

/// Rejects objects that ask for it, and nothing else.
fn refusing() -> Webhook {
    Webhook::validating(WebhookTarget::of::<Lease>(), |request| {
        match request.name.strip_prefix("refuse-") {
            Some(why) => Err(Denial::of_field(
                "spec.holderIdentity",
                format!("must not be {why}"),
            )),
            None => Ok(vec![]),
        }
    })
}

fn labelling() -> Webhook {
    Webhook::mutating(WebhookTarget::of::<Lease>(), |_| {
        let add = json!([{ "op": "add", "path": "/metadata/labels", "value": { "reviewed": "yes" } }]);
        Ok(serde_json::from_value(add).unwrap())
    })
}

fn lease(name: &str) -> Lease {
    serde_json::from_value(json!({ "metadata": { "name": name }, "spec": { "holderIdentity": "x" } }))
        .unwrap()
}

/// The API server receives a configuration through its own watch, so the first answers may not include us.
async fn until_refused(leases: &Api<Lease>) -> kube::core::Status {
    let dry_run = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let refused = lease("refuse-me");
    wait::eventually(DEADLINE, "the webhook to be asked", async || {
        match leases.create(&dry_run, &refused).await {
            Err(kube::Error::Api(status)) if status.message.contains("must not be") => Ok(*status),
            other => Err(format!("{other:?}")),
        }
    })
    .await
}

#[tokio::test]
async fn a_validating_webhook_refuses_in_our_words() {
    let cluster = Cluster::shared().await;
    let (client, namespace) = (cluster.client().await, cluster.namespace("validate").await);
    let replica = Replica::start(client.clone(), &namespace, &[refusing()]).await;
    replica.register().await;
    let leases: Api<Lease> = Api::namespaced(client, &namespace);

    let status = until_refused(&leases).await;
    assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
    assert_eq!(
        status.message,
        "admission webhook \"validate.v1.leases.coordination.k8s.io\" denied the request: \
         spec.holderIdentity: must not be me"
    );
    assert_eq!(status.details.unwrap().causes[0].field, "spec.holderIdentity");
    leases
        .create(&PostParams::default(), &lease("fine"))
        .await
        .unwrap();
    replica.registration.unregister().await.unwrap();
}

#[tokio::test]
async fn a_mutating_webhook_changes_the_object() {
    let cluster = Cluster::shared().await;
    let (client, namespace) = (cluster.client().await, cluster.namespace("mutate").await);
    let replica = Replica::start(client.clone(), &namespace, &[labelling()]).await;
    replica.register().await;
    let leases: Api<Lease> = Api::namespaced(client, &namespace);
    let dry_run = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    wait::eventually(DEADLINE, "the label", async || {
        let created = leases
            .create(&dry_run, &lease("fine"))
            .await
            .map_err(|error| error.to_string())?;
        created
            .labels()
            .get("reviewed")
            .map(|_| ())
            .ok_or(format!("{created:?}"))
    })
    .await;
    replica.registration.unregister().await.unwrap();
}

#[tokio::test]
async fn nothing_keeps_an_object_from_going_away() {
    let cluster = Cluster::shared().await;
    let (client, namespace) = (cluster.client().await, cluster.namespace("going").await);
    let leases: Api<Lease> = Api::namespaced(client.clone(), &namespace);
    let mut held = lease("refuse-held");
    held.metadata.finalizers = Some(vec!["example.com/hold".into()]);
    leases.create(&PostParams::default(), &held).await.unwrap();

    let replica = Replica::start(client, &namespace, &[refusing()]).await;
    replica.register().await;
    until_refused(&leases).await;
    let touch = json!({ "metadata": { "labels": { "a": "b" } } });
    let update = leases
        .patch(
            "refuse-held",
            &PatchParams::default(),
            &Patch::Merge(touch.clone()),
        )
        .await;
    assert!(update.unwrap_err().to_string().contains("must not be held"));

    leases
        .delete("refuse-held", &DeleteParams::default())
        .await
        .unwrap();
    leases
        .patch("refuse-held", &PatchParams::default(), &Patch::Merge(touch))
        .await
        .unwrap();
    let release = json!({ "metadata": { "finalizers": null } });
    leases
        .patch("refuse-held", &PatchParams::default(), &Patch::Merge(release))
        .await
        .unwrap();
    assert!(leases.get_opt("refuse-held").await.unwrap().is_none());
    replica.registration.unregister().await.unwrap();
}

#[tokio::test]
async fn a_second_start_writes_nothing_and_needs_no_more_permissions() {
    let cluster = Cluster::shared().await;
    let namespace = cluster.namespace("quiet").await;
    let grants = [
        Grant::In(namespace.clone(), rbac::merge(&admission::namespace_rules())),
        Grant::Everywhere(rbac::merge(&admission::cluster_rules())),
    ];
    let user = cluster.user(&namespace, "operator", &grants).await;
    let webhooks = [refusing(), labelling()];
    let first = Replica::start(user.client().await, &namespace, &webhooks).await;
    first.register().await;

    let audit = cluster.audit();
    let again = Replica::start(user.client().await, &namespace, &webhooks).await;
    // The address differs in this test, and the first replica's is registered.
    first.registration.register(Some(&again.bundle())).await.unwrap();
    let requests = audit.requests().await.of_user(user.name());
    assert!(requests.count() >= 3, "{requests:#?}");
    assert_eq!(requests.writes().count(), 0);

    let edited = json!({ "webhooks": [] });
    let api: Api<ValidatingWebhookConfiguration> = Api::all(cluster.client().await);
    api.patch(&namespace, &PatchParams::default(), &Patch::Merge(edited))
        .await
        .unwrap();
    first.register().await;
    assert_eq!(
        api.get(&namespace).await.unwrap().webhooks.unwrap().len(),
        1,
        "an edit is undone"
    );
    first.registration.unregister().await.unwrap();
}

#[tokio::test]
async fn a_table_without_mutating_rules_takes_the_old_ones_away() {
    let cluster = Cluster::shared().await;
    let (client, namespace) = (cluster.client().await, cluster.namespace("fewer").await);
    let both = Replica::start(client.clone(), &namespace, &[refusing(), labelling()]).await;
    both.register().await;
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    assert!(mutating.get_opt(&namespace).await.unwrap().is_some());

    let one = Replica::start(client, &namespace, &[refusing()]).await;
    one.register().await;
    assert!(mutating.get_opt(&namespace).await.unwrap().is_none());
    assert!(validating.get_opt(&namespace).await.unwrap().is_some());
    one.registration.unregister().await.unwrap();
    assert!(validating.get_opt(&namespace).await.unwrap().is_none());
    one.registration.unregister().await.unwrap();
}

#[tokio::test]
async fn what_belongs_to_others_is_left_alone() {
    let cluster = Cluster::shared().await;
    let (client, namespace) = (cluster.client().await, cluster.namespace("foreign").await);
    let secrets: Api<Secret> = Api::namespaced(client.clone(), &namespace);
    let theirs: Secret =
        serde_json::from_value(json!({ "metadata": { "name": "webhook-certificate" } })).unwrap();
    secrets.create(&PostParams::default(), &theirs).await.unwrap();
    let source = CertificateSource::SelfMade(self_made(&namespace));
    let refused = Admission::start(client.clone(), LOOPBACK, source, Arc::new([]))
        .await
        .err()
        .unwrap();
    let expected = CertificateError::Foreign {
        secret: format!("{namespace}/webhook-certificate"),
    };
    assert_eq!(refused.to_string(), expected.to_string());

    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    let theirs = serde_json::from_value(json!({ "metadata": { "name": namespace } })).unwrap();
    configurations
        .create(&PostParams::default(), &theirs)
        .await
        .unwrap();
    let settings = RegistrationSettings {
        name: namespace.clone(),
        endpoint: Endpoint::url("https://127.0.0.1:1").unwrap(),
        failure_policy: FailurePolicy::Ignore,
        namespaces: vec![],
    };
    let registration = Registration::new(client, settings, Arc::new([refusing()]));
    let refused = registration.register(None).await.unwrap_err();
    assert!(matches!(refused, RegistrationError::Foreign { .. }), "{refused}");
    registration.unregister().await.unwrap();
    configurations
        .delete(&namespace, &DeleteParams::default())
        .await
        .unwrap();
}
