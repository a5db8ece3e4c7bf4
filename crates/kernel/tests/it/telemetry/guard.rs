//! Access control for metrics, as the cluster decides it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use axum::body::Body;
use http::{Request, StatusCode};
use serde_json::json;
use stanchion_kernel::telemetry::Metrics;
use stanchion_kernel::telemetry::guard::guarded;
use stanchion_kernel::telemetry::health::scraped;
use stanchion_testkit::cluster::{Cluster, Grant, path_rule};
use stanchion_testkit::wait;
use tower::ServiceExt as _;

/// A busy API server takes a while to honour a permission.
const WAIT_TIMEOUT: Duration = Duration::from_mins(1);

type Count = Arc<AtomicUsize>;

async fn ask(router: &axum::Router, path: &str, authorization: &str) -> StatusCode {
    let request = Request::get(path).header("authorization", authorization);
    let request = request.body(Body::empty()).unwrap();
    router.clone().oneshot(request).await.unwrap().status()
}

#[tokio::test]
async fn metrics_need_a_permission() {
    let cluster = Cluster::shared().await;
    let namespace = cluster.namespace("guard").await;
    let router = guarded(scraped(Metrics::new("1")), cluster.client().await);
    for nobody in ["", "Bearer of bad news", "Basic dXNlcjpwYXNz"] {
        let answer = ask(&router, "/metrics", nobody).await;
        assert_eq!(answer, StatusCode::UNAUTHORIZED, "{nobody:?}");
    }
    let bearer = async |name: &str, grants: &[Grant]| {
        let user = cluster.user(&namespace, name, grants).await;
        format!("Bearer {}", user.token())
    };
    let stranger = bearer("stranger", &[]).await;
    assert_eq!(ask(&router, "/metrics", &stranger).await, StatusCode::FORBIDDEN);

    let scraper = bearer("scraper", &[Grant::Everywhere(vec![path_rule("/metrics")])]).await;
    let is_let_in = async || ask(&router, "/metrics", &scraper).await == StatusCode::OK;
    wait::eventually(WAIT_TIMEOUT, "the scraper to be let in", is_let_in).await;

    // Cached for a while: a scraper that comes again costs no request.
    let audit = cluster.audit();
    assert!(is_let_in().await);
    let asked = audit.requests().await;
    let asked = asked.filter(|request| request.resource == "tokenreviews");
    assert_eq!(asked.count(), 0);
    // A missing path is missing for everyone.
    assert_eq!(ask(&router, "/other", "").await, StatusCode::NOT_FOUND);
}

/// Everyone who reaches the port may send any tokens: their reviews must not overload the API server.
#[tokio::test(start_paused = true)]
async fn many_unknown_tokens_are_few_reviews_at_a_time() {
    let (open, most, all) = <(Count, Count, Count)>::default();
    let counts = (Arc::clone(&open), Arc::clone(&most), Arc::clone(&all));
    let refusing = tower::service_fn(move |_: Request<kube::client::Body>| {
        let (open, most, all) = counts.clone();
        async move {
            all.fetch_add(1, SeqCst);
            most.fetch_max(open.fetch_add(1, SeqCst) + 1, SeqCst);
            tokio::time::sleep(Duration::from_millis(10)).await;
            open.fetch_sub(1, SeqCst);
            let review = json!({ "metadata": {}, "spec": {}, "status": { "authenticated": false } });
            Ok::<_, std::convert::Infallible>(http::Response::new(Body::from(review.to_string())))
        }
    });
    let router = guarded(scraped(Metrics::new("1")), kube::Client::new(refusing, "default"));
    let tokens: Vec<String> = (0..200).map(|number| format!("Bearer token-{number}")).collect();
    let asking = tokens.iter().map(|token| ask(&router, "/metrics", token));
    let answers = futures::future::join_all(asking).await;
    assert!(answers.iter().all(|answer| *answer == StatusCode::UNAUTHORIZED));
    assert_eq!((most.load(SeqCst), all.load(SeqCst)), (4, 200));
    // A token that was refused is not reviewed again at once.
    ask(&router, "/metrics", &tokens[0]).await;
    assert_eq!(all.load(SeqCst), 200);
    tokio::time::sleep(Duration::from_secs(11)).await;
    ask(&router, "/metrics", &tokens[0]).await;
    assert_eq!(all.load(SeqCst), 201);
}
