//! Events on a real API server.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use k8s_openapi::api::{
    core::v1::{ConfigMap, Namespace, ObjectReference},
    events::v1::Event,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::json;
use stanchion_kernel::{
    events::{self, EventRecord, Recorder, Severity},
    rbac,
};
use stanchion_testkit::cluster::{Cluster, Grant};

fn event(note: &str) -> EventRecord {
    EventRecord {
        kind: Severity::Warning,
        reason: "DatabaseDown".into(),
        action: "Reconcile".into(),
        note: note.into(),
    }
}

/// An object to report about, and a recorder with only the permissions that it declares.
async fn subject(cluster: &Cluster, namespace: &str) -> (ObjectReference, Recorder) {
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client().await, namespace);
    let map = serde_json::from_value(json!({ "metadata": { "name": "subject" } })).unwrap();
    let map = maps.create(&PostParams::default(), &map).await.unwrap();
    let grants = [Grant::In(namespace.to_owned(), rbac::merge(&events::rules()))];
    let user = cluster.user(namespace, "recorder", &grants).await;
    let recorder = Recorder::new(user.client().await, "stanchion/test", "a-replica");
    (map.object_ref(&()), recorder)
}

/// The events about `subject`: note and count.
async fn reported(cluster: &Cluster, namespace: &str) -> Vec<(String, i32)> {
    let events: Api<Event> = Api::namespaced(cluster.client().await, namespace);
    let mut found = events.list(&ListParams::default()).await.unwrap().items;
    found.retain(|event| event.regarding.as_ref().unwrap().name.as_deref() == Some("subject"));
    found.sort_by_key(|event| event.event_time.clone());
    let reported = |event: Event| (event.note.unwrap(), event.series.map_or(1, |series| series.count));
    found.into_iter().map(reported).collect()
}

#[tokio::test]
async fn repetitions_are_one_event_and_new_words_are_seen() {
    let cluster = Cluster::shared().await;
    let namespace = cluster.namespace("events").await;
    let (subject, recorder) = subject(cluster, &namespace).await;
    for note in ["refused", "refused", "timed out", "refused", "timed out"] {
        recorder.publish(&subject, &event(note)).await;
    }
    let expected = [("refused".to_owned(), 3), ("timed out".to_owned(), 2)];
    assert_eq!(reported(cluster, &namespace).await, expected);
    assert_eq!(recorder.failures().get(), 0);
}

#[tokio::test]
async fn kubectl_describes_the_repetitions() {
    let cluster = Cluster::shared().await;
    let Some(kubectl) = cluster.kubectl() else {
        return;
    };
    let namespace = cluster.namespace("events").await;
    let (subject, recorder) = subject(cluster, &namespace).await;
    for note in ["refused", "refused", "timed out", "refused"] {
        recorder.publish(&subject, &event(note)).await;
    }
    let described = kubectl
        .run(&["-n", &namespace, "describe", "configmap", "subject"])
        .await
        .unwrap();
    for words in ["Warning", "DatabaseDown", "(x3 over", "timed out"] {
        assert!(described.contains(words), "{words}: {described}");
    }
}

#[tokio::test]
async fn a_deleted_event_is_sent_again() {
    let cluster = Cluster::shared().await;
    let namespace = cluster.namespace("events").await;
    let (subject, recorder) = subject(cluster, &namespace).await;
    recorder.publish(&subject, &event("refused")).await;
    recorder.publish(&subject, &event("refused")).await;
    let events: Api<Event> = Api::namespaced(cluster.client().await, &namespace);
    events
        .delete_collection(&DeleteParams::default(), &ListParams::default())
        .await
        .unwrap();
    recorder.publish(&subject, &event("refused")).await;
    assert_eq!(reported(cluster, &namespace).await, [("refused".to_owned(), 1)]);
    assert_eq!(recorder.failures().get(), 0);
}

#[tokio::test]
async fn the_longest_names_and_notes_are_accepted() {
    let cluster = Cluster::shared().await;
    let namespace = cluster.namespace("events").await;
    let (mut subject, recorder) = subject(cluster, &namespace).await;
    let long = EventRecord {
        reason: "Reason".repeat(50),
        action: "Action".repeat(50),
        ..event(&"Ünïcödé ".repeat(500))
    };
    recorder.publish(&subject, &long).await;
    assert_eq!(reported(cluster, &namespace).await.len(), 1);
    subject.name = Some(format!("{}.{}", "a".repeat(235), "b".repeat(17)));
    recorder.publish(&subject, &long).await;
    assert_eq!(recorder.failures().get(), 0);
}

#[tokio::test]
async fn events_of_objects_without_a_namespace_are_in_default() {
    let cluster = Cluster::shared().await;
    let client = cluster.client().await;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let subject = namespaces.get(&cluster.namespace("events").await).await.unwrap();
    let recorder = Recorder::new(client.clone(), "stanchion/test", "a-replica");
    recorder
        .publish(&subject.object_ref(&()), &event("cluster-wide"))
        .await;
    let events: Api<Event> = Api::namespaced(client, "default");
    let found = events.list(&ListParams::default()).await.unwrap();
    let regarding = |event: &Event| event.regarding.as_ref().and_then(|object| object.uid.clone());
    assert!(found.iter().any(|event| regarding(event) == subject.uid()));
}

#[tokio::test]
async fn a_namespace_that_is_going_is_no_failure() {
    let cluster = Cluster::shared().await;
    let namespace = cluster.namespace("events").await;
    let (subject, recorder) = subject(cluster, &namespace).await;
    let client = cluster.client().await;
    // A finalizer keeps the namespace terminating for as long as we need it.
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
    let finalizers = |value: serde_json::Value| Patch::Merge(json!({ "metadata": { "finalizers": value } }));
    let params = PatchParams::default();
    maps.patch("subject", &params, &finalizers(json!(["example.com/hold"])))
        .await
        .unwrap();
    let namespaces: Api<Namespace> = Api::all(client);
    namespaces
        .delete(&namespace, &DeleteParams::default())
        .await
        .unwrap();
    // The administrator's recorder, which needs no permissions that might be gone already.
    let administrator = Recorder::new(cluster.client().await, "stanchion/test", "a-replica");
    administrator.publish(&subject, &event("too late")).await;
    assert_eq!(administrator.failures().get(), 0);
    assert_eq!(recorder.failures().get(), 0);
    maps.patch("subject", &params, &finalizers(json!(null)))
        .await
        .unwrap();
}

#[tokio::test]
async fn without_the_right_to_write_it_is_counted_and_nothing_more() {
    let cluster = Cluster::shared().await;
    let (namespace, other) = (
        cluster.namespace("events").await,
        cluster.namespace("events").await,
    );
    let (subject, recorder) = subject(cluster, &namespace).await;
    let elsewhere = ObjectReference {
        namespace: Some(other),
        ..subject
    };
    recorder.publish(&elsewhere, &event("refused")).await;
    assert_eq!(recorder.failures().get(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_hangs_does_not_hold_the_reconcile() {
    let hanging = tower::service_fn(|_: http::Request<kube::client::Body>| {
        std::future::pending::<Result<http::Response<Full<Bytes>>, tower::BoxError>>()
    });
    let recorder = Recorder::new(Client::new(hanging, "default"), "stanchion/test", "a-replica");
    let subject = ObjectReference {
        name: Some("subject".into()),
        ..ObjectReference::default()
    };
    let refused = event("refused");
    let published = recorder.publish(&subject, &refused);
    tokio::time::timeout(Duration::from_secs(10), published)
        .await
        .unwrap();
    assert_eq!(recorder.failures().get(), 1);
}
