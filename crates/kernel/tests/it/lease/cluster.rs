//! The same protocol with a real API server, with only the permissions that the elector declares.

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use stanchion_kernel::{
    lease::{self, Elector, Identity, LeaseSettings, Term, Timings},
    rbac,
};
use stanchion_testkit::cluster::{Cluster, Grant};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn leadership_is_handed_over() {
    let cluster = Cluster::shared().await;
    let namespace = cluster.namespace("lease").await;
    let grants = [Grant::In(namespace.clone(), rbac::merge(&lease::rules()))];
    let user = cluster.user(&namespace, "operator", &grants).await;
    let elector = async |name: &str| {
        let settings = LeaseSettings {
            namespace: namespace.clone(),
            name: "stanchion".into(),
            identity: Identity::new(name),
            timings: Timings::default(),
        };
        Elector::new(user.client().await, settings)
    };
    let leases: Api<Lease> = Api::namespaced(cluster.client().await, &namespace);
    let spec = async || leases.get("stanchion").await.unwrap().spec.unwrap();

    let (first, second) = (elector("first").await, elector("second").await);
    let (elected, (stop, shutdown)) = (oneshot::channel(), oneshot::channel::<()>());
    let leading = tokio::spawn(async move {
        let work = async |leadership: lease::Leadership| {
            elected.0.send(leadership).unwrap();
            let _ = shutdown.await;
        };
        first.lead(CancellationToken::new(), work).await
    });
    let leadership = elected.1.await.unwrap();
    assert!(leadership.is_valid());
    assert!(spec().await.holder_identity.unwrap().starts_with("first_"));

    let next = tokio::spawn(async move {
        second
            .lead(CancellationToken::new(), async |leadership| leadership.is_valid())
            .await
    });
    stop.send(()).unwrap();
    assert_eq!(leading.await.unwrap(), Term::Finished(()));
    assert!(!leadership.is_valid());
    assert_eq!(next.await.unwrap(), Term::Finished(true));
    let spec = spec().await;
    assert_eq!(
        (spec.holder_identity.as_deref(), spec.lease_transitions),
        (Some(""), Some(1))
    );
}
