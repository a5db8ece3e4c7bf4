//! Certificates that change under load, and replicas that must agree on them.

use std::time::Duration;

use k8s_openapi::api::{
    admissionregistration::v1::ValidatingWebhookConfiguration, coordination::v1::Lease, core::v1::Secret,
};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams},
};
use rustls::pki_types::{CertificateDer, pem::PemObject};
use serde_json::json;
use stanchion_kernel::admission::SelfMade;
use stanchion_testkit::{cluster::Cluster, wait};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{DEADLINE, Replica, refusing, self_made, tls::presented, until_refused};

const DAY: Duration = Duration::from_hours(24);

async fn stored(secrets: &Api<Secret>, key: &str) -> CertificateDer<'static> {
    let secret = secrets.get("webhook-certificate").await.unwrap();
    CertificateDer::from_pem_slice(&secret.data.unwrap()[key].0).unwrap()
}

#[tokio::test]
async fn replicas_that_start_together_agree_on_one_authority() {
    let cluster = Cluster::shared().await;
    let (client, namespace) = (cluster.client().await, cluster.namespace("agree").await);
    let webhooks = [refusing()];
    let replicas =
        futures::future::join_all((0..4).map(|_| Replica::start(client.clone(), &namespace, &webhooks)))
            .await;
    let secrets: Api<Secret> = Api::namespaced(client, &namespace);
    let (bundle, certificate) = (replicas[0].bundle(), stored(&secrets, "tls.crt").await);
    for replica in &replicas {
        assert_eq!(replica.bundle(), bundle);
        assert_eq!(presented(replica.addr, &bundle).await.unwrap(), certificate);
    }
}

#[tokio::test]
async fn a_rotation_is_served_and_trusted_at_every_moment() {
    let cluster = Cluster::shared().await;
    let (client, namespace) = (cluster.client().await, cluster.namespace("rotate").await);
    let webhooks = [refusing()];
    let replica = Replica::start(client.clone(), &namespace, &webhooks).await;
    let (registration, bundles) = (replica.registration.clone(), replica.ca_bundle.clone());
    let _registering = AbortOnDropHandle::new(tokio::spawn(async move {
        registration.keep(bundles, CancellationToken::new()).await;
    }));
    let leases: Api<Lease> = Api::namespaced(client.clone(), &namespace);
    let secrets: Api<Secret> = Api::namespaced(client.clone(), &namespace);
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    until_refused(&leases).await;

    // A replica with a longer period finds the current certificate due, and rotates at once.
    for period in [DAY * 100, DAY * 1000] {
        let (next, before) = (stored(&secrets, "next.crt").await, replica.bundle());
        let due = SelfMade {
            rotate_every: period,
            ..self_made(&namespace)
        };
        let other = Replica::with(client.clone(), due, &namespace, &webhooks).await;
        assert_eq!(stored(&secrets, "tls.crt").await, next);
        assert_eq!(
            presented(other.addr, &before).await.unwrap(),
            next,
            "trusted before it is announced"
        );

        wait::eventually(DEADLINE, "the rotation to be adopted", async || {
            let shown = presented(replica.addr, &before)
                .await
                .expect("trusted by the old bundle");
            let also = presented(replica.addr, &other.bundle()).await;
            also.expect("trusted by the new bundle");
            shown == next
        })
        .await;
        wait::eventually(DEADLINE, "the new bundle to be registered", async || {
            let found = configurations.get(&namespace).await.unwrap().webhooks.unwrap();
            found[0].client_config.ca_bundle.as_ref().unwrap().0 == other.bundle().as_bytes()
        })
        .await;
        until_refused(&leases).await;
    }
    replica.registration.unregister().await.unwrap();
}

#[tokio::test]
async fn a_secret_that_was_deleted_or_broken_is_made_again() {
    let cluster = Cluster::shared().await;
    let (client, namespace) = (cluster.client().await, cluster.namespace("broken").await);
    let replica = Replica::start(client.clone(), &namespace, &[refusing()]).await;
    let secrets: Api<Secret> = Api::namespaced(client, &namespace);
    let mut bundles = replica.ca_bundle.clone();
    let (nonsense, other) = (json!({ "data": { "tls.key": "bm8=" } }), DeleteParams::default());
    for delete in [false, true] {
        bundles.mark_unchanged();
        if delete {
            secrets.delete("webhook-certificate", &other).await.unwrap();
        } else {
            let patch = Patch::Merge(nonsense.clone());
            secrets
                .patch("webhook-certificate", &PatchParams::default(), &patch)
                .await
                .unwrap();
        }
        tokio::time::timeout(DEADLINE, bundles.changed())
            .await
            .unwrap()
            .unwrap();
        let shown = presented(replica.addr, &replica.bundle()).await.unwrap();
        assert_eq!(shown, stored(&secrets, "tls.crt").await);
    }
}
