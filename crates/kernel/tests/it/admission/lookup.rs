//! Reads of other objects in a webhook: only what the author of the request may read.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;
use stanchion_kernel::admission::{Lookup, Request, Unseen};
use stanchion_kernel::rbac::{Rule, merge};
use stanchion_testkit::cluster::{Cluster, Grant};
use stanchion_testkit::faults::Faults;

/// A request by this user in this namespace.
fn request(user: &str, groups: &[&str], namespace: &str) -> Request {
    let kind = json!({ "group": "", "version": "v1", "kind": "Secret" });
    let resource = json!({ "group": "", "version": "v1", "resource": "secrets" });
    serde_json::from_value(json!({
        "uid": "1", "kind": kind, "resource": resource, "name": "x", "namespace": namespace,
        "userInfo": { "username": user, "groups": groups }, "operation": "CREATE",
    }))
    .unwrap()
}

#[tokio::test]
async fn only_what_the_author_may_read_in_its_own_namespace_is_looked_at() {
    let cluster = Cluster::shared().await;
    let (own, bank) = (
        cluster.namespace("lookup").await,
        cluster.namespace("lookup-bank").await,
    );
    for namespace in [&own, &bank] {
        let secrets: Api<Secret> = Api::namespaced(cluster.client().await, namespace);
        let secret =
            serde_json::from_value(json!({ "metadata": { "name": "pw" }, "stringData": { "a": "b" } }));
        secrets
            .create(&PostParams::default(), &secret.unwrap())
            .await
            .unwrap();
    }
    let read = merge(&[Rule::new("", &["secrets"], &["get", "list"])]);
    let tenant = cluster
        .user(&own, "tenant", &[Grant::In(own.clone(), read)])
        .await;
    let author = format!("system:serviceaccount:{own}:tenant");
    let _ = tenant;
    let lookup: Lookup<Secret> = Lookup::new(cluster.client().await);

    let may = request(&author, &[], &own);
    assert!(lookup.get(&may, "pw").await.unwrap().is_some());
    assert!(lookup.get(&may, "absent").await.unwrap().is_none());
    assert!(
        lookup
            .list(&may)
            .await
            .unwrap()
            .iter()
            .any(|secret| secret.metadata.name.as_deref() == Some("pw"))
    );

    let may_not = [
        request(&author, &[], &bank),
        request("system:anonymous", &["system:unauthenticated"], &own),
        request(&author, &[], ""),
        request(&author, &[], "../bank"),
    ];
    for request in &may_not {
        assert_eq!(
            lookup.get(request, "pw").await.err(),
            Some(Unseen),
            "{:?}",
            request.namespace
        );
        assert_eq!(
            lookup.list(request).await.err(),
            Some(Unseen),
            "{:?}",
            request.namespace
        );
    }
    for no_name in ["../../bank/secrets/pw", "pw?watch=true", ""] {
        assert_eq!(lookup.get(&may, no_name).await.err(), Some(Unseen), "{no_name}");
    }
}

/// Attack a18: three hundred reviews were three hundred lists.
#[tokio::test]
async fn many_reviews_are_few_questions() {
    let cluster = Cluster::shared().await;
    let namespace = cluster.namespace("lookup").await;
    let faults = Faults::new();
    let metrics = stanchion_kernel::telemetry::Metrics::new("test");
    let options = stanchion_kernel::client::Options::new("lookup").with_layer(faults.clone());
    let client = stanchion_kernel::client::build(cluster.config().await, &metrics, &options).unwrap();
    let lookup: Lookup<Secret> = Lookup::new(client);
    let request = Arc::new(request("admin", &["system:masters"], &namespace));
    let reviews = (0..300).map(|_| lookup.list(&request));
    for listed in futures::future::join_all(reviews).await {
        assert!(listed.is_ok());
    }
    let calls = faults.calls().len();
    assert!(calls < 20, "{calls}");
}
