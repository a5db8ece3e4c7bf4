//! Access control for metrics: a request needs a token that the cluster knows and whose owner may `get` the path, as
//! with Kubernetes' own components. Metrics reveal how many tenants there are and what fails.
//!
//! A scraper comes every few seconds with the same token, so a positive result is cached; otherwise an idle operator
//! would keep sending requests.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use tracing::warn;

use crate::rbac::Rule;

/// How long a positive result is cached.
const BELIEVED: Duration = Duration::from_mins(2);
/// Maximum number of cached tokens. There are a few scrapers; with more, more requests are sent.
const REMEMBERED: usize = 64;

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
        client,
        known: Mutex::default(),
    });
    router.route_layer(from_fn_with_state(guard, pass))
}

struct Guard {
    client: Client,
    /// Digests of tokens and paths, and when they were checked.
    known: Mutex<HashMap<[u8; 32], Instant>>,
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
        let digest: [u8; 32] = Sha256::new()
            .chain_update(path)
            .chain_update([0])
            .chain_update(token)
            .finalize()
            .into();
        if self.is_known(&digest) {
            return Ok(StatusCode::OK);
        }
        let Some(user) = self.owner(token).await? else {
            return Ok(StatusCode::UNAUTHORIZED);
        };
        if !self.may_get(user, path).await? {
            return Ok(StatusCode::FORBIDDEN);
        }
        self.remember(digest);
        Ok(StatusCode::OK)
    }

    fn is_known(&self, digest: &[u8; 32]) -> bool {
        let known = self.known.lock();
        known.get(digest).is_some_and(|since| since.elapsed() < BELIEVED)
    }

    fn remember(&self, digest: [u8; 32]) {
        let mut known = self.known.lock();
        known.retain(|_, since| since.elapsed() < BELIEVED);
        if known.len() < REMEMBERED {
            known.insert(digest, Instant::now());
        }
    }

    /// The owner of a token, if it is valid.
    async fn owner(&self, token: &str) -> kube::Result<Option<UserInfo>> {
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: Some(token.to_owned()),
                ..TokenReviewSpec::default()
            },
            ..TokenReview::default()
        };
        let reviews: Api<TokenReview> = Api::all(self.client.clone());
        let status = reviews.create(&PostParams::default(), &review).await?.status;
        let status = status.unwrap_or_default();
        Ok(status.user.filter(|_| status.authenticated == Some(true)))
    }

    async fn may_get(&self, user: UserInfo, path: &str) -> kube::Result<bool> {
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: user.username,
                groups: user.groups,
                uid: user.uid,
                extra: user.extra,
                non_resource_attributes: Some(NonResourceAttributes {
                    path: Some(path.to_owned()),
                    verb: Some("get".to_owned()),
                }),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let reviews: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let answer = reviews.create(&PostParams::default(), &review).await?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    }
}
