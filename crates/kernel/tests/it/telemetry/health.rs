//! Health checks and metrics over HTTP.

use std::net::SocketAddr;

use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use stanchion_kernel::telemetry::{
    Metrics,
    health::{self, Health},
    metrics::CONTENT_TYPE,
};
use tokio_util::sync::CancellationToken;

use super::scrape::Scrape;

const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

struct Answer {
    status: StatusCode,
    content_type: String,
    body: String,
}

async fn get(addr: SocketAddr, path: &str) -> Answer {
    let client = Client::builder(TokioExecutor::new()).build_http::<Empty<bytes::Bytes>>();
    let request = Request::get(format!("http://{addr}{path}"))
        .body(Empty::new())
        .unwrap();
    let response = client.request(request).await.unwrap();
    let status = response.status();
    let content_type = response.headers()["content-type"].to_str().unwrap().to_owned();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    Answer {
        status,
        content_type,
        body: String::from_utf8(body.to_vec()).unwrap(),
    }
}

#[tokio::test]
async fn ready_only_when_every_check_passes_and_says_which_does_not() {
    let health = Health::default();
    let users = health.ready.add("user-cache", "the first list of PostgresUsers");
    let lease = health.ready.add("lease", "the lease");
    let server = health::bind("health", ANY_PORT, health::probes(health.clone()))
        .await
        .unwrap();
    let (addr, stop) = (server.addr(), CancellationToken::new());
    let serving = tokio::spawn(server.serve(stop.clone()));

    assert_eq!(
        get(addr, "/livez").await.status,
        StatusCode::OK,
        "alive long before it is ready"
    );
    let answer = get(addr, "/readyz").await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(
        answer
            .body
            .contains("[-]user-cache failed: the first list of PostgresUsers"),
        "{}",
        answer.body
    );

    users.pass();
    let answer = get(addr, "/readyz").await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(
        answer.body.contains("[+]user-cache ok") && answer.body.contains("[-]lease"),
        "{}",
        answer.body
    );
    assert_eq!(
        health.ready.failing(),
        [("lease".to_owned(), "the lease".to_owned())]
    );

    lease.pass();
    let answer = get(addr, "/readyz").await;
    assert_eq!((answer.status, answer.body.as_str()), (StatusCode::OK, "ok"));
    assert!(get(addr, "/readyz?verbose").await.body.contains("[+]lease ok"));

    lease.fail("stopping");
    assert_eq!(get(addr, "/readyz").await.status, StatusCode::SERVICE_UNAVAILABLE);
    stop.cancel();
    serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_failing_liveness_check_asks_for_a_restart() {
    let health = Health::default();
    health.live.add("driver", "the driver's heartbeat");
    let server = health::bind("health", ANY_PORT, health::probes(health))
        .await
        .unwrap();
    let (addr, stop) = (server.addr(), CancellationToken::new());
    let serving = tokio::spawn(server.serve(stop.clone()));
    assert_eq!(get(addr, "/livez").await.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(get(addr, "/readyz").await.status, StatusCode::OK);
    stop.cancel();
    serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_scraper_gets_metrics_in_the_accepted_format() {
    let metrics = Metrics::new("1.2.3");
    let server = health::bind("metrics", ANY_PORT, health::scraped(metrics.clone()))
        .await
        .unwrap();
    let (addr, stop) = (server.addr(), CancellationToken::new());
    let serving = tokio::spawn(server.serve(stop.clone()));
    metrics.controller("user").retried();
    let answer = get(addr, "/metrics").await;
    assert_eq!(
        (answer.status, answer.content_type.as_str()),
        (StatusCode::OK, CONTENT_TYPE)
    );
    let scrape = Scrape::parse(&answer.body);
    assert_eq!(
        scrape.count(r#"workqueue_retries_total{name="user",controller="user"}"#),
        1
    );
    stop.cancel();
    serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn an_address_that_is_taken_is_one_clear_error() {
    let first = health::bind("health", ANY_PORT, health::probes(Health::default()))
        .await
        .unwrap();
    let error = health::bind("metrics", first.addr(), health::scraped(Metrics::new("1")))
        .await
        .unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with(&format!("cannot listen on {} for metrics: ", first.addr())),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_that_stays_open_does_not_hold_the_process() {
    let (entered, mut inside) = tokio::sync::mpsc::unbounded_channel();
    let never = move || async move {
        entered.send(()).unwrap();
        std::future::pending::<()>().await;
    };
    let stuck = axum::Router::new().route("/", axum::routing::get(never));
    let server = health::bind("health", ANY_PORT, stuck).await.unwrap();
    let (addr, stop) = (server.addr(), CancellationToken::new());
    let serving = tokio::spawn(server.serve(stop.clone()));
    let mut stream = tokio::net::TcpStream::connect(addr).await.unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut stream, b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        .await
        .unwrap();
    inside.recv().await.unwrap();
    stop.cancel();
    serving.await.unwrap().unwrap();
}
