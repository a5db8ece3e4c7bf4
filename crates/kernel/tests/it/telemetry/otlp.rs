//! A span arrives at a collector.

use std::time::Duration;

use axum::{Router, body::Bytes, http::HeaderMap, routing::post};
use stanchion_kernel::telemetry::{
    logs::{self, Format},
    otlp,
};
use tokio::{sync::mpsc, time::timeout};
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
