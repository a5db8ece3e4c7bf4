//! The client against a misbehaving API server, with paused time.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures::{AsyncBufReadExt as _, StreamExt as _, TryStreamExt as _, future};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, StreamBody};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{ListParams, PostParams, WatchParams},
    client::Body,
};
use stanchion_kernel::{
    client::{self, ApiResponse, ApiService, DEADLINE, Options, deadline::DeadlineExceeded},
    telemetry::Metrics,
};
use tokio::time::Instant;
use tower::{BoxError, ServiceExt as _, service_fn};

use super::scrape::Scrape;

fn answer(status: u16, body: impl Into<Bytes>) -> ApiResponse {
    let body = Full::new(body.into()).map_err(BoxError::from);
    Response::builder()
        .status(status)
        .body(Box::new(body) as _)
        .unwrap()
}

fn status(code: u16) -> ApiResponse {
    answer(
        code,
        format!(r#"{{"kind":"Status","apiVersion":"v1","code":{code},"reason":"x","message":"y"}}"#),
    )
}

fn empty_list() -> ApiResponse {
    answer(
        200,
        r#"{"kind":"ConfigMapList","apiVersion":"v1","metadata":{},"items":[]}"#,
    )
}

/// A server that returns these answers in turn, then the last one forever, and counts the requests.
fn server<F, Fut>(respond: F) -> (ApiService, Arc<AtomicUsize>)
where
    F: Fn(usize, Request<Body>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<ApiResponse, BoxError>> + Send + 'static,
{
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let service = service_fn(move |request| respond(count.fetch_add(1, Ordering::SeqCst), request));
    (service.boxed(), asked)
}

fn client(service: ApiService, metrics: &Metrics) -> Client {
    client::over(service, "default", metrics, &Options::new("test"))
}

fn config_maps(client: Client) -> Api<ConfigMap> {
    Api::namespaced(client, "a")
}

fn is_deadline(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Service(source) if source.is::<DeadlineExceeded>())
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_is_given_up() {
    let (service, _) = server(|_, _| future::pending());
    let metrics = Metrics::new("1");
    let began = Instant::now();
    let error = config_maps(client(service, &metrics)).get("b").await.unwrap_err();
    assert!(is_deadline(&error), "{error:?}");
    assert_eq!(began.elapsed().as_secs(), DEADLINE.as_secs());
    assert!(
        error
            .to_string()
            .contains("GET /api/v1/namespaces/a/configmaps/b"),
        "{error}"
    );
    let scrape = Scrape::parse(&metrics.encode());
    assert_eq!(
        scrape.count(r#"stanchion_api_requests_total{verb="get",resource="configmaps",code="<error>"}"#),
        1,
        "an attempt that was given up is counted"
    );
}

#[tokio::test(start_paused = true)]
async fn a_body_that_stops_half_way_is_given_up() {
    let (service, _) = server(|_, _| async {
        let begun = futures::stream::iter([Ok(http_body::Frame::data(Bytes::from_static(b"{\"kind\":")))]);
        let body = StreamBody::new(begun.chain(futures::stream::pending::<Result<_, BoxError>>()));
        Ok(Response::new(Box::new(body) as _))
    });
    let began = Instant::now();
    let error = config_maps(client(service, &Metrics::new("1")))
        .list(&ListParams::default())
        .await
        .unwrap_err();
    assert!(is_deadline(&error), "{error:?}");
    assert_eq!(began.elapsed().as_secs(), DEADLINE.as_secs());
}

#[tokio::test(start_paused = true)]
async fn a_watch_lives_longer_than_the_deadline() {
    let (service, _) = server(|_, _| async {
        let bookmark = r#"{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"9","creationTimestamp":null}}}"#;
        let late = futures::stream::once(async move {
            tokio::time::sleep(DEADLINE * 4).await;
            Ok::<_, BoxError>(http_body::Frame::data(Bytes::from(format!("{bookmark}\n"))))
        });
        Ok(Response::new(Box::new(StreamBody::new(Box::pin(late))) as _))
    });
    let api = config_maps(client(service, &Metrics::new("1")));
    let events = api.watch(&WatchParams::default(), "0").await.unwrap();
    let events: Vec<_> = events.try_collect().await.unwrap();
    assert_eq!(events.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_does_not_begin_is_given_up() {
    let (service, _) = server(|_, _| future::pending());
    let error = config_maps(client(service, &Metrics::new("1")))
        .watch(&WatchParams::default(), "0")
        .await;
    assert!(is_deadline(&error.err().unwrap()));
}

#[tokio::test(start_paused = true)]
async fn a_followed_log_lives_longer_than_the_deadline() {
    let (service, _) = server(|_, _| async {
        let late = futures::stream::once(async {
            tokio::time::sleep(DEADLINE * 2).await;
            Ok::<_, BoxError>(http_body::Frame::data(Bytes::from_static(b"line\n")))
        });
        Ok(Response::new(Box::new(StreamBody::new(Box::pin(late))) as _))
    });
    let request = Request::get("/api/v1/namespaces/a/pods/b/log?follow=true")
        .body(Vec::new())
        .unwrap();
    let lines = client(service, &Metrics::new("1"))
        .request_stream(request)
        .await
        .unwrap()
        .lines();
    assert_eq!(lines.try_collect::<Vec<_>>().await.unwrap(), ["line"]);
}

#[tokio::test(start_paused = true)]
async fn a_busy_server_is_read_again() {
    let (service, asked) = server(|turn, _| async move {
        Ok([429, 503, 504]
            .get(turn)
            .map_or_else(empty_list, |code| status(*code)))
    });
    let metrics = Metrics::new("1");
    config_maps(client(service, &metrics))
        .list(&ListParams::default())
        .await
        .unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 4);
    let scrape = Scrape::parse(&metrics.encode());
    for code in [429, 503, 504, 200] {
        let series = format!(r#"rest_client_requests_total{{code="{code}",method="GET"}}"#);
        assert_eq!(scrape.count(&series), 1, "each attempt is counted");
    }
    assert_eq!(
        scrape.count(r#"rest_client_request_duration_seconds_count{verb="list"}"#),
        4
    );
    assert!(!scrape.has("stanchion_api_writes_total"), "a read is not a write");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stays_busy_is_not_asked_for_minutes() {
    let (service, asked) = server(|_, _| async { Ok(status(503)) });
    let began = Instant::now();
    let error = config_maps(client(service, &Metrics::new("1")))
        .get("b")
        .await
        .unwrap_err();
    assert!(
        matches!(&error, kube::Error::Api(status) if status.code == 503),
        "{error:?}"
    );
    assert_eq!(asked.load(Ordering::SeqCst), 4);
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_write_is_sent_once_whatever_the_answer() {
    for code in [409, 429, 500, 503, 504] {
        let (service, asked) = server(move |_, _| async move { Ok(status(code)) });
        let metrics = Metrics::new("1");
        let error = config_maps(client(service, &metrics))
            .create(&PostParams::default(), &ConfigMap::default())
            .await
            .unwrap_err();
        assert!(
            matches!(&error, kube::Error::Api(status) if status.code == code),
            "{error:?}"
        );
        assert_eq!(asked.load(Ordering::SeqCst), 1, "{code}");
        let scrape = Scrape::parse(&metrics.encode());
        assert_eq!(
            scrape.count(r#"stanchion_api_writes_total{verb="create",resource="configmaps"}"#),
            1
        );
    }
}

#[tokio::test]
async fn a_callers_layers_are_nearest_to_the_wire_and_keep_their_order() {
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let note = |name: &'static str| {
        let seen = Arc::clone(&seen);
        tower::util::MapRequestLayer::new(move |request: Request<Body>| {
            seen.lock().unwrap().push(name);
            request
        })
    };
    let (service, _) =
        server(|turn, _| async move { Ok(if turn == 0 { status(503) } else { empty_list() }) });
    let options = Options::new("test")
        .with_layer(note("fence"))
        .with_layer(note("faults"));
    let client = client::over(service, "default", &Metrics::new("1"), &options);
    config_maps(client).list(&ListParams::default()).await.unwrap();
    assert_eq!(
        *seen.lock().unwrap(),
        ["fence", "faults", "fence", "faults"],
        "each attempt passes them"
    );
}

#[tokio::test]
async fn the_real_client_says_who_it_is_and_does_not_repeat_a_write() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap())
        .parse()
        .unwrap();
    let agents = Arc::new(std::sync::Mutex::new(Vec::new()));
    let heard = Arc::clone(&agents);
    let router = axum::Router::new().fallback(move |headers: http::HeaderMap| async move {
        heard
            .lock()
            .unwrap()
            .push(headers["user-agent"].to_str().unwrap().to_owned());
        (
            StatusCode::SERVICE_UNAVAILABLE,
            r#"{"kind":"Status","code":503,"reason":"x","message":"busy"}"#,
        )
    });
    let server = tokio::spawn(async move { axum::serve(listener, router).await });

    let client = client::build(
        kube::Config::new(url),
        &Metrics::new("1"),
        &Options::new("user,policy"),
    )
    .unwrap();
    config_maps(client)
        .create(&PostParams::default(), &ConfigMap::default())
        .await
        .unwrap_err();
    let expected = format!("stanchion/{} (user,policy)", env!("CARGO_PKG_VERSION"));
    assert_eq!(*agents.lock().unwrap(), [expected]);
    server.abort();
}

#[test]
fn a_component_that_is_no_header_is_refused() {
    let config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
    let error = client::build(config, &Metrics::new("1"), &Options::new("a\nb"))
        .err()
        .unwrap();
    assert!(error.to_string().contains("user agent"), "{error}");
}
