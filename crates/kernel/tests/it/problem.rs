//! Classification of a real API server's errors.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ResourceQuota};
use kube::api::{DeleteParams, DynamicObject, ObjectMeta, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use serde_json::{Value, json};
use stanchion_kernel::{Class, Problem};
use stanchion_testkit::cluster::Cluster;
use stanchion_testkit::wait;

use crate::test_env::WAIT_TIMEOUT;

fn map(name: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.into()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    }
}

/// The API of `ConfigMap`s in a namespace of its own.
async fn maps(cluster: &Cluster) -> (Api<ConfigMap>, Client, String) {
    let (client, namespace) = (cluster.client().await, cluster.namespace("problem").await);
    (Api::namespaced(client.clone(), &namespace), client, namespace)
}

fn is(error: kube::Error, class: Class, reason: &str) {
    let problem = Problem::from(error);
    assert_eq!((problem.class, problem.reason), (class, reason), "{problem:?}");
}

#[tokio::test]
async fn what_is_not_there_is_waited_for() {
    let (maps, client, namespace) = maps(Cluster::shared().await).await;
    is(maps.get("none").await.unwrap_err(), Class::Dependency, "NotFound");
    let unknown = ApiResource::from_gvk(&GroupVersionKind::gvk("nobody.example.com", "v1", "Nothing"));
    let unserved: Api<DynamicObject> = Api::namespaced_with(client, &namespace, &unknown);
    is(
        unserved.get("none").await.unwrap_err(),
        Class::Dependency,
        "KindMissing",
    );
}

#[tokio::test]
async fn a_lost_race_is_transient() {
    let (maps, ..) = maps(Cluster::shared().await).await;
    let params = PostParams::default();
    let first = maps.create(&params, &map("one")).await.unwrap();
    is(
        maps.create(&params, &map("one")).await.unwrap_err(),
        Class::Transient,
        "Conflict",
    );
    let mut changed = first.clone();
    changed.data = Some([("a".to_owned(), "1".to_owned())].into());
    maps.replace("one", &params, &changed).await.unwrap();
    is(
        maps.replace("one", &params, &changed).await.unwrap_err(),
        Class::Transient,
        "Conflict",
    );
    // For an object that was deleted and created again.
    let patch = |uid: &str| {
        let metadata = json!({ "name": "one", "uid": uid });
        Patch::Apply(json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata }))
    };
    let apply = PatchParams::apply("test").force();
    let other = patch("00000000-0000-4000-8000-000000000000");
    is(
        maps.patch("one", &apply, &other).await.unwrap_err(),
        Class::Transient,
        "Conflict",
    );
    maps.delete("one", &DeleteParams::default()).await.unwrap();
    let gone = patch(first.metadata.uid.as_deref().unwrap());
    is(
        maps.patch("one", &apply, &gone).await.unwrap_err(),
        Class::Transient,
        "Conflict",
    );
}

#[tokio::test]
async fn what_is_wrong_needs_a_person() {
    let (maps, client, namespace) = maps(Cluster::shared().await).await;
    let params = PostParams::default();
    is(
        maps.create(&params, &map("Not A Name")).await.unwrap_err(),
        Class::Human,
        "Rejected",
    );
    let merge = |patch: Value| Patch::Merge(patch);
    maps.create(&params, &map("one")).await.unwrap();
    let malformed = merge(json!({ "data": [1] }));
    let refused = maps
        .patch("one", &PatchParams::default(), &malformed)
        .await
        .unwrap_err();
    is(refused, Class::Human, "Rejected");
    let services = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Service"));
    let services: Api<DynamicObject> = Api::namespaced_with(client, &namespace, &services);
    let service = json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "s" }, "spec": { "ports": [{ "port": 80 }] } });
    let apply = PatchParams::apply("test");
    services
        .patch("s", &apply, &Patch::Apply(&service))
        .await
        .unwrap();
    let other = merge(json!({ "spec": { "clusterIP": "10.0.0.250" } }));
    let refused = services
        .patch("s", &PatchParams::default(), &other)
        .await
        .unwrap_err();
    let problem = Problem::from(refused);
    assert_eq!(
        (problem.class, problem.reason),
        (Class::Human, "ImmutableField"),
        "{problem:?}"
    );
    assert!(
        problem
            .message
            .starts_with("spec.clusterIPs[0] cannot be changed"),
        "{problem}"
    );
}

#[tokio::test]
async fn a_missing_permission_and_an_exceeded_quota_differ() {
    let cluster = Cluster::shared().await;
    let (maps, client, namespace) = maps(cluster).await;
    let nobody = cluster.user(&namespace, "nobody", &[]).await;
    let theirs: Api<ConfigMap> = Api::namespaced(nobody.client().await, &namespace);
    is(theirs.get("one").await.unwrap_err(), Class::Human, "Forbidden");

    let quotas: Api<ResourceQuota> = Api::namespaced(client, &namespace);
    let quota = json!({ "metadata": { "name": "none" }, "spec": { "hard": { "count/configmaps": "0" } } });
    quotas
        .create(&PostParams::default(), &serde_json::from_value(quota).unwrap())
        .await
        .unwrap();
    let refused = async || maps.create(&PostParams::default(), &map("one")).await.err();
    let is_counted = async || {
        let error = refused().await;
        if error.is_none() {
            maps.delete("one", &DeleteParams::default()).await.unwrap();
        }
        // Until the quota is computed, the server returns another message.
        error.filter(|error| error.to_string().contains("exceeded quota"))
    };
    let error = wait::eventually(WAIT_TIMEOUT, "the quota to be counted", is_counted).await;
    is(error, Class::Human, "QuotaExceeded");
}

#[tokio::test]
async fn a_namespace_that_is_leaving_is_left_alone() {
    let (maps, client, namespace) = maps(Cluster::shared().await).await;
    let mut held = map("held");
    held.metadata.finalizers = Some(vec!["example.com/hold".into()]);
    maps.create(&PostParams::default(), &held).await.unwrap();
    let namespaces: Api<Namespace> = Api::all(client);
    namespaces
        .delete(&namespace, &DeleteParams::default())
        .await
        .unwrap();
    let refused = maps
        .create(&PostParams::default(), &map("late"))
        .await
        .unwrap_err();
    is(refused, Class::Transient, "NamespaceTerminating");
    let release = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    maps.patch("held", &PatchParams::default(), &release)
        .await
        .unwrap();
}
