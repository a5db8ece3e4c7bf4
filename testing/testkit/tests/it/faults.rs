//! Each fault has its effect on the intended request and on no other.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures::FutureExt as _;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, PostParams},
    client::{Body, ClientBuilder, DynBody},
};
use serde_json::json;
use stanchion_testkit::{
    cluster::Cluster,
    faults::{CutPoint, Fault, Faults, Moment, Rule},
};
use tower::{
    BoxError, service_fn,
    util::{BoxLayer, BoxService},
};

/// A server that accepts every request and counts the writes.
fn agreeable(faults: &Faults) -> (Client, Arc<AtomicUsize>) {
    let done = Arc::new(AtomicUsize::new(0));
    let counter = done.clone();
    let server = service_fn(move |request: Request<Body>| {
        if request.method() != Method::GET {
            counter.fetch_add(1, Ordering::SeqCst);
        }
        let status = if request.method() == Method::POST {
            201
        } else {
            200
        };
        let object = json!({"metadata": {"name": "a"}, "items": []});
        let body = Full::new(Bytes::from(object.to_string())).map_err(BoxError::from);
        let answer = Response::builder()
            .status(status)
            .body(Box::new(body) as Box<DynBody>);
        async move { answer.map_err(BoxError::from) }
    });
    // Boxed, because an operator's client takes layers of unknown type.
    let layer: BoxLayer<BoxService<_, _, _>, _, _, _> = BoxLayer::new(faults.clone());
    let client = ClientBuilder::new(BoxService::new(server), "default")
        .with_layer(&layer)
        .build();
    (client, done)
}

fn maps(client: Client) -> Api<ConfigMap> {
    Api::namespaced(client, "n")
}

fn map(name: &str) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.to_owned());
    map
}

async fn create(client: &Client) -> Result<(), kube::Error> {
    maps(client.clone())
        .create(&PostParams::default(), &map("a"))
        .await
        .map(drop)
}

fn code(result: Result<(), kube::Error>) -> Option<u16> {
    match result {
        Err(kube::Error::Api(status)) => Some(status.code),
        _ => None,
    }
}

#[tokio::test]
async fn writes_are_recorded_and_reads_are_no_writes() {
    let faults = Faults::new();
    let (client, _) = agreeable(&faults);
    create(&client).await.unwrap();
    maps(client.clone()).list(&ListParams::default()).await.unwrap();
    maps(client).delete("a", &DeleteParams::default()).await.unwrap();
    let calls = faults.calls();
    assert_eq!(
        calls.iter().map(|call| call.write).collect::<Vec<_>>(),
        [Some(1), None, Some(2)]
    );
    assert!(calls[0].created() && !calls[0].deleted());
    assert!(calls[2].deleted() && !calls[2].created());
    let target = &calls[0].target;
    assert_eq!(
        (
            target.resource.as_str(),
            target.namespace.as_str(),
            target.name.as_str()
        ),
        ("configmaps", "n", "a")
    );
    assert!(calls.iter().all(|call| !call.disturbed));
}

#[tokio::test]
async fn errors_come_before_or_after_the_work() {
    for status in [409, 429, 500, 503, 504] {
        for (fault, expected_done) in [(Fault::refuse(status), 0), (Fault::deny(status), 1)] {
            let faults = Faults::new().with(Rule::write(1, fault));
            let (client, done) = agreeable(&faults);
            assert_eq!(code(create(&client).await), Some(status), "{fault:?}");
            assert_eq!(done.load(Ordering::SeqCst), expected_done, "{fault:?}");
            create(&client).await.expect("the second write is left alone");
            assert!(faults.calls()[0].disturbed);
            assert_eq!(faults.calls()[0].served, (expected_done == 1).then_some(201));
        }
    }
}

#[tokio::test]
async fn a_throttled_request_is_told_when_to_come_back() {
    let faults = Faults::new().with(Rule::write(1, Fault::throttle(7)));
    let (client, _) = agreeable(&faults);
    let request = Request::post("/api/v1/namespaces/n/configmaps")
        .body(Body::empty())
        .unwrap();
    let answer = client.send(request).await.unwrap();
    assert_eq!(answer.status(), 429);
    assert_eq!(answer.headers()["retry-after"], "7");
}

#[tokio::test]
async fn connections_break_before_or_after_the_work() {
    for (moment, expected_done) in [(Moment::Before, 0), (Moment::After, 1)] {
        let faults = Faults::new().with(Rule::write(1, Fault::Disconnect(moment)));
        let (client, done) = agreeable(&faults);
        let error = create(&client).await.unwrap_err();
        assert!(matches!(error, kube::Error::Service(_)), "{error}");
        assert_eq!(done.load(Ordering::SeqCst), expected_done);
    }
}

#[tokio::test(start_paused = true)]
async fn silence_and_delays() {
    for (moment, expected_done) in [(Moment::Before, 0), (Moment::After, 1)] {
        let faults = Faults::new().with(Rule::write(1, Fault::Hang(moment)));
        let (client, done) = agreeable(&faults);
        assert!(
            tokio::time::timeout(Duration::from_hours(1), create(&client))
                .await
                .is_err()
        );
        assert_eq!(done.load(Ordering::SeqCst), expected_done);
    }
    let faults = Faults::new().with(Rule::write(1, Fault::Delay(Duration::from_secs(5))));
    let (client, _) = agreeable(&faults);
    let started = tokio::time::Instant::now();
    create(&client).await.unwrap();
    assert!(started.elapsed() >= Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn after_a_cut_nothing_goes_through() {
    for (point, expected_done, answered) in [
        (CutPoint::Before, 1, false),
        (CutPoint::Unanswered, 2, false),
        (CutPoint::Answered, 2, true),
    ] {
        let faults = Faults::new().with(Rule::write(2, Fault::Cut(point)));
        let (client, done) = agreeable(&faults);
        create(&client).await.unwrap();
        assert!(faults.cut().now_or_never().is_none());
        let second = tokio::time::timeout(Duration::from_mins(1), create(&client)).await;
        assert_eq!(second.is_ok(), answered, "{point:?}");
        faults.cut().await;
        assert_eq!(done.load(Ordering::SeqCst), expected_done, "{point:?}");
        let list = maps(client.clone());
        assert!(
            tokio::time::timeout(Duration::from_mins(1), list.list(&ListParams::default()))
                .await
                .is_err()
        );
        assert_eq!(done.load(Ordering::SeqCst), expected_done);
    }
}

#[tokio::test]
async fn rules_choose_skip_and_end() {
    let faults = Faults::counting(|target| target.resource != "leases").with(
        Rule::when(|call| call.target.resource == "configmaps", Fault::refuse(500))
            .after(1)
            .times(2),
    );
    let (client, done) = agreeable(&faults);
    let mut codes = Vec::new();
    for _ in 0..4 {
        codes.push(code(create(&client).await));
    }
    assert_eq!(codes, [None, Some(500), Some(500), None]);
    assert_eq!(done.load(Ordering::SeqCst), 2);
    faults.script(Rule::writes(Fault::refuse(503)));
    assert_eq!(code(create(&client).await), Some(503));
    faults.relent();
    create(&client).await.unwrap();
    let lease = Request::post("/apis/coordination.k8s.io/v1/namespaces/n/leases")
        .body(Body::empty())
        .unwrap();
    client.send(lease).await.unwrap();
    assert_eq!(faults.writes().len(), 6, "the lease is not counted");
}

#[tokio::test]
async fn on_a_cluster_a_lost_answer_leaves_the_object_behind() {
    let cluster = Cluster::shared().await;
    let namespace = cluster.namespace("faults").await;
    let faults = Faults::new().with(Rule::write(1, Fault::Disconnect(Moment::After)));
    let maps: Api<ConfigMap> = Api::namespaced(faults.client(cluster.config().await), &namespace);
    maps.create(&PostParams::default(), &map("a")).await.unwrap_err();
    let again = maps.create(&PostParams::default(), &map("a")).await.unwrap_err();
    assert!(
        matches!(&again, kube::Error::Api(status) if status.is_already_exists()),
        "{again}"
    );
    assert_eq!(
        faults.writes().iter().map(|call| call.served).collect::<Vec<_>>(),
        [Some(201), Some(409)]
    );
}
