//! Access control for metrics, as the cluster decides it.

use std::time::Duration;

use axum::body::Body;
use http::{Request, StatusCode};
use stanchion_kernel::telemetry::Metrics;
use stanchion_kernel::telemetry::guard::guarded;
use stanchion_kernel::telemetry::health::scraped;
use stanchion_testkit::cluster::{Cluster, Grant, path_rule};
use stanchion_testkit::wait;
use tower::ServiceExt as _;

/// A busy API server takes a while to honour a permission.
const WAIT_TIMEOUT: Duration = Duration::from_mins(1);

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
