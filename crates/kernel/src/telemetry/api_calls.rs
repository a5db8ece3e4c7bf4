//! Counts and times each request to the Kubernetes API, with the names of the API server's audit log.
//!
//! The layer is inside the retries, so that each attempt counts, and outside the layers of a test, so that an injected
//! fault counts like a real one. A cancelled request (its reconcile was dropped, its deadline passed) is counted as
//! unanswered.

use std::{
    task::{Context, Poll},
    time::Instant,
};

use futures::future::BoxFuture;
use http::{Method, Request, Response, StatusCode};
use kube::client::Body;
use tower::{Layer, Service};

use super::metrics::ApiMetrics;

/// The verb of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the API server's own verbs")]
pub enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
    /// A method that the API does not use.
    Other,
}

impl Verb {
    /// The verb in the spelling of RBAC and the audit log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Other => "other",
        }
    }

    /// Whether the verb writes.
    pub const fn is_write(self) -> bool {
        matches!(
            self,
            Self::Create | Self::Update | Self::Patch | Self::Delete | Self::DeleteCollection
        )
    }
}

/// A request, reduced to what may become a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The verb.
    pub verb: Verb,
    /// `pods`, `deployments/status`; `nonresource` for a path such as `/version`.
    pub resource: String,
    /// Whether it is a dry run.
    pub dry_run: bool,
}

impl Call {
    /// Parses a request's method, path and query. Names of objects and namespaces are dropped.
    pub fn of<B>(request: &Request<B>) -> Self {
        let query = request.uri().query().unwrap_or_default();
        let (resource, named) =
            resource_of(request.uri().path()).unwrap_or_else(|| ("nonresource".to_owned(), true));
        let verb = match *request.method() {
            Method::GET if asks(query, "watch") => Verb::Watch,
            Method::GET if named => Verb::Get,
            Method::GET => Verb::List,
            Method::POST => Verb::Create,
            Method::PUT => Verb::Update,
            Method::PATCH => Verb::Patch,
            Method::DELETE if named => Verb::Delete,
            Method::DELETE => Verb::DeleteCollection,
            _ => Verb::Other,
        };
        Self {
            verb,
            resource,
            dry_run: pairs(query).any(|(key, _)| key == "dryRun"),
        }
    }

    /// Whether it can change what the cluster stores. A review is a read that uses POST.
    pub fn is_write(&self) -> bool {
        self.verb.is_write() && !self.dry_run && !self.resource.ends_with("reviews")
    }
}

/// Whether the response has no end: a watch, a followed log, an upgraded connection.
pub fn is_stream<B>(request: &Request<B>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    asks(query, "watch") || asks(query, "follow") || request.headers().contains_key(http::header::UPGRADE)
}

fn asks(query: &str, key: &str) -> bool {
    pairs(query).any(|(name, value)| name == key && matches!(value, "true" | "1"))
}

fn pairs(query: &str) -> impl Iterator<Item = (&str, &str)> {
    query
        .split('&')
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

/// The resource with its subresource, and whether the path names one object.
fn resource_of(path: &str) -> Option<(String, bool)> {
    let mut parts = path.trim_matches('/').split('/');
    // A group and version, or only the version of the core group.
    match parts.next()? {
        "api" => _ = parts.next()?,
        "apis" => _ = (parts.next()?, parts.next()?),
        _ => return None,
    }
    let rest: Vec<&str> = parts.collect();
    // `namespaces/NS` is a prefix if a resource follows it, and otherwise the object itself.
    let rest = match rest.as_slice() {
        ["namespaces", _, "status" | "finalize"] => rest.as_slice(),
        ["namespaces", _, inner @ ..] if !inner.is_empty() => inner,
        all => all,
    };
    let (resource, named) = match rest {
        [resource] => ((*resource).to_owned(), false),
        [resource, _name] => ((*resource).to_owned(), true),
        [resource, _name, subresource, ..] => (format!("{resource}/{subresource}"), true),
        [] => return None,
    };
    // A label may only contain a plausible resource name, so that odd paths do not create series.
    let plausible =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'/');
    (resource.len() <= 100 && resource.bytes().all(plausible)).then_some((resource, named))
}

/// The layer. See the [module](self).
#[derive(Clone, Debug)]
pub struct ApiCallsLayer {
    metrics: ApiMetrics,
}

impl ApiCallsLayer {
    /// Counts into these metrics.
    pub fn new(metrics: ApiMetrics) -> Self {
        Self { metrics }
    }
}

impl<S> Layer<S> for ApiCallsLayer {
    type Service = ApiCalls<S>;

    fn layer(&self, inner: S) -> Self::Service {
        ApiCalls {
            inner,
            metrics: self.metrics.clone(),
        }
    }
}

/// A service whose requests are counted.
#[derive(Clone, Debug)]
pub struct ApiCalls<S> {
    inner: S,
    metrics: ApiMetrics,
}

impl<S, B> Service<Request<Body>> for ApiCalls<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let mut attempt = Attempt {
            metrics: self.metrics.clone(),
            method: request.method().clone(),
            call: Call::of(&request),
            since: Instant::now(),
            code: None,
        };
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            attempt.answered(answer.as_ref().ok().map(Response::status));
            answer
        })
    }
}

/// Counts itself when it ends, in whatever way.
struct Attempt {
    metrics: ApiMetrics,
    method: Method,
    call: Call,
    since: Instant,
    code: Option<StatusCode>,
}

impl Attempt {
    fn answered(&mut self, code: Option<StatusCode>) {
        self.code = code;
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        self.metrics
            .called(&self.method, &self.call, self.code, self.since.elapsed());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(method: Method, uri: &str) -> (&'static str, String, bool) {
        let request = Request::builder().method(method).uri(uri).body(()).unwrap();
        let call = Call::of(&request);
        (call.verb.as_str(), call.resource.clone(), call.is_write())
    }

    #[test]
    fn requests_are_named_as_the_audit_log_names_them() {
        let table = [
            (
                Method::GET,
                "/api/v1/namespaces/a/secrets/b",
                "get",
                "secrets",
                false,
            ),
            (
                Method::GET,
                "/api/v1/namespaces/a/secrets",
                "list",
                "secrets",
                false,
            ),
            (
                Method::GET,
                "/api/v1/secrets?limit=5&watch=true",
                "watch",
                "secrets",
                false,
            ),
            (Method::GET, "/api/v1/namespaces", "list", "namespaces", false),
            (Method::GET, "/api/v1/namespaces/a", "get", "namespaces", false),
            (
                Method::PUT,
                "/api/v1/namespaces/a/finalize",
                "update",
                "namespaces/finalize",
                true,
            ),
            (
                Method::POST,
                "/apis/apps/v1/namespaces/a/deployments",
                "create",
                "deployments",
                true,
            ),
            (
                Method::POST,
                "/apis/apps/v1/namespaces/a/deployments?dryRun=All",
                "create",
                "deployments",
                false,
            ),
            (
                Method::PATCH,
                "/apis/g/v1/namespaces/a/users/b/status?force=true",
                "patch",
                "users/status",
                true,
            ),
            (Method::DELETE, "/apis/g/v1/things/b", "delete", "things", true),
            (
                Method::DELETE,
                "/apis/g/v1/things?labelSelector=a",
                "deletecollection",
                "things",
                true,
            ),
            (
                Method::POST,
                "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                "create",
                "selfsubjectaccessreviews",
                false,
            ),
            (Method::GET, "/version", "get", "nonresource", false),
            (Method::GET, "/apis/g/v1", "get", "nonresource", false),
            (Method::GET, "/api/v1/%2e%2e/x", "get", "nonresource", false),
        ];
        for (method, uri, verb, resource, write) in table {
            assert_eq!(call(method, uri), (verb, resource.to_owned(), write), "{uri}");
        }
    }

    #[test]
    fn only_endless_answers_are_streams() {
        let stream = |uri: &str| is_stream(&Request::builder().uri(uri).body(()).unwrap());
        assert!(stream("/api/v1/pods?watch=1"));
        assert!(stream("/api/v1/namespaces/a/pods/b/log?follow=true"));
        assert!(!stream("/api/v1/pods?watch=false"));
        assert!(!stream("/api/v1/pods?labelSelector=watch"));
    }
}
