//! Spans and metrics arrive at a collector.

use std::time::Duration;

use axum::{Router, body::Bytes, http::HeaderMap, routing::post};
use prometheus_client::metrics::counter::Counter;
use stanchion_kernel::telemetry::{
    Metrics,
    logs::{self, Format},
    metrics::Finish,
    otlp,
};
use stanchion_testkit::collector::Collector;
use tokio::{sync::mpsc, time::timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, subscriber::with_default};

fn contains(body: &[u8], text: &str) -> bool {
    body.windows(text.len()).any(|window| window == text.as_bytes())
}

#[tokio::test]
async fn a_reconcile_arrives_at_the_collector_with_its_object() {
    let (heard, mut batches) = mpsc::unbounded_channel();
    let collector = Router::new().route(
        "/v1/traces",
        post(move |headers: HeaderMap, body: Bytes| async move {
            heard
                .send((headers["content-type"].to_str().unwrap().to_owned(), body))
                .unwrap();
        }),
    );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move { axum::serve(listener, collector).await });

    let (layer, traces) = otlp::layer(&endpoint, "1.2.3").unwrap();
    let subscriber = logs::subscriber(Format::Text, "off", vec![layer], std::io::sink, false).unwrap();
    with_default(subscriber, || {
        logs::reconcile_span("user", Some("shop"), "one", Some(3)).in_scope(|| info!("looked"));
    });
    traces.shutdown().await;

    let (content_type, body) = timeout(Duration::from_secs(30), batches.recv())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(content_type, "application/x-protobuf");
    for text in [
        "reconcile",
        "namespace",
        "shop",
        "one",
        "looked",
        "service.name",
        "stanchion",
        "1.2.3",
    ] {
        assert!(contains(&body, text), "no {text:?} in the batch");
    }
    serving.abort();
}

#[tokio::test]
async fn a_collector_that_is_away_does_not_hold_the_process() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let (layer, traces) = otlp::layer(&endpoint, "1").unwrap();
    let subscriber = logs::subscriber(Format::Text, "off", vec![layer], std::io::sink, false).unwrap();
    with_default(subscriber, || {
        logs::reconcile_span("user", None, "one", None).in_scope(|| info!("looked"));
    });
    timeout(Duration::from_mins(1), traces.shutdown()).await.unwrap();
}

/// Exports the metrics once, as at the end of a process.
async fn send(metrics: &Metrics, endpoint: &str) {
    let export = otlp::Export::new(metrics.clone(), endpoint, "1.2.3").unwrap();
    let ended = CancellationToken::new();
    ended.cancel();
    let sending = export.expect("no variable says otherwise").run(ended);
    timeout(Duration::from_mins(1), sending).await.unwrap();
}

#[tokio::test]
async fn every_metric_arrives_at_the_collector() {
    let (collector, metrics) = (Collector::start().await, Metrics::new("1.2.3"));
    let user = metrics.controller("user");
    user.queued().started().finish(Finish::Success);
    let fed = metrics.register(|registry| {
        let fed = Counter::<u64>::default();
        registry.register("pets_fed", "Pets that were fed", fed.clone());
        fed
    });
    fed.inc_by(3);
    metrics.rename_for_otlp([("pets_fed_total", "pets.fed")]);
    assert_eq!(collector.series(), []);
    send(&metrics, &collector.endpoint()).await;

    assert_eq!(collector.total("controller_runtime_reconcile_total"), Some(1.0));
    assert_eq!(
        collector.total("controller_runtime_reconcile_time_seconds"),
        Some(1.0)
    );
    assert_eq!(collector.total("pets.fed"), Some(3.0));
    let sent = collector.series();
    let text = metrics.encode();
    let shown = text.lines().filter(|line| !line.starts_with('#'));
    for line in shown.filter(|line| !line.starts_with("pets")) {
        let name = line.split(['{', ' ']).next().unwrap();
        let family = ["_bucket", "_sum", "_count"]
            .iter()
            .find_map(|end| name.strip_suffix(end))
            .unwrap_or(name);
        assert!(
            sent.iter()
                .any(|series| [name, family].contains(&series.name.as_str())),
            "{name} was not sent"
        );
    }
    assert_eq!(collector.sender()["service.version"], "1.2.3");
}

#[tokio::test]
async fn an_unreachable_collector_does_not_delay_shutdown() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    send(&Metrics::new("1"), &endpoint).await;
}
