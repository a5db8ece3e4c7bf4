//! Access control for metrics: a request needs a token that the cluster knows and whose owner may `get` the path, as
//! with Kubernetes' own components. Metrics reveal how many tenants there are and what fails.
//!
//! A scraper comes every few seconds with the same token, so a positive result is cached; otherwise an idle operator
//! would keep sending requests. A stranger may send any number of tokens, so a negative result is cached, too, and only
//! a few tokens are reviewed at the same time. Not every valid token is a JWT, so their form says nothing.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use k8s_openapi::api::authorization::v1::{NonResourceAttributes, SubjectAccessReviewSpec};
use kube::Client;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;
use tracing::warn;

use crate::rbac::Rule;
use crate::reviews::{Remembered, Reviews};

/// How long a positive result is cached.
const BELIEVED: Duration = Duration::from_mins(2);
/// How long a negative result is cached: a permission that is granted works after this time.
const REFUSED: Duration = Duration::from_secs(10);

/// The RBAC rules for token and access reviews.
pub fn rules() -> Vec<Rule> {
    let create = &["create"];
    vec![
        Rule::new("authentication.k8s.io", &["tokenreviews"], create).cluster_wide(),
        Rule::new("authorization.k8s.io", &["subjectaccessreviews"], create).cluster_wide(),
    ]
}

/// Allows requests whose token may `get` the path.
pub fn guarded(router: Router, client: Client) -> Router {
    let guard = Arc::new(Guard {
        reviews: Reviews::new(client),
        allowed: Remembered::new(BELIEVED),
        refused: Remembered::new(REFUSED),
    });
    router.route_layer(from_fn_with_state(guard, pass))
}

/// The digest of a path and a token.
type Digest = [u8; 32];

struct Guard {
    reviews: Reviews,
    allowed: Remembered<Digest, StatusCode>,
    /// Separate, so that strangers cannot fill the cache of the scrapers.
    refused: Remembered<Digest, StatusCode>,
}

async fn pass(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    let header = request.headers().get(AUTHORIZATION);
    let header = header.and_then(|header| header.to_str().ok());
    let Some(token) = header.and_then(|header| header.strip_prefix("Bearer ")) else {
        return refusal(StatusCode::UNAUTHORIZED);
    };
    match guard.verdict(token.trim(), request.uri().path()).await {
        Ok(StatusCode::OK) => next.run(request).await,
        Ok(code) => refusal(code),
        Err(error) => {
            warn!(%error, "cannot review the token of a request for metrics");
            refusal(StatusCode::SERVICE_UNAVAILABLE)
        }
    }
}

fn refusal(code: StatusCode) -> Response {
    let mut response = (code, format!("{code}\n")).into_response();
    if code == StatusCode::UNAUTHORIZED {
        let scheme = axum::http::HeaderValue::from_static("Bearer");
        response.headers_mut().insert(WWW_AUTHENTICATE, scheme);
    }
    response
}

impl Guard {
    async fn verdict(&self, token: &str, path: &str) -> kube::Result<StatusCode> {
        let digest: Digest = Sha256::new()
            .chain_update(path)
            .chain_update([0])
            .chain_update(token)
            .finalize()
            .into();
        let known = || self.allowed.get(&digest).or_else(|| self.refused.get(&digest));
        if let Some(known) = known() {
            return Ok(known);
        }
        let _question = self.reviews.question().await;
        // Another request with this token may have been first.
        if let Some(known) = known() {
            return Ok(known);
        }
        let asked = Instant::now();
        let verdict = self.review(token, path).await?;
        let answers = if verdict == StatusCode::OK {
            &self.allowed
        } else {
            &self.refused
        };
        answers.put(digest, asked, verdict);
        Ok(verdict)
    }

    async fn review(&self, token: &str, path: &str) -> kube::Result<StatusCode> {
        let Some(user) = self.reviews.owner(token).await? else {
            return Ok(StatusCode::UNAUTHORIZED);
        };
        let get = NonResourceAttributes {
            path: Some(path.to_owned()),
            verb: Some("get".to_owned()),
        };
        let what = SubjectAccessReviewSpec {
            non_resource_attributes: Some(get),
            ..SubjectAccessReviewSpec::default()
        };
        let may_get = self.reviews.is_allowed(user, what).await?;
        Ok(if may_get {
            StatusCode::OK
        } else {
            StatusCode::FORBIDDEN
        })
    }
}
