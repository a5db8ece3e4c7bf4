//! What a request is.

use http::request::Parts;
use http::{Method, Request};

use crate::disturbance::Which;

/// A request, as far as the network has to know it.
pub(super) struct Asked {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) which: Which,
}

impl Asked {
    pub(super) fn of(parts: &Parts) -> Self {
        let path = parts.uri.path().to_owned();
        let query = parts.uri.query().unwrap_or_default();
        let method = parts.method.clone();
        let which = if is_lease(&path) {
            Which::Lease
        } else if method == Method::GET {
            read(&path, query)
        } else if path.contains("/events") {
            Which::Event
        } else if path.ends_with("/status") {
            Which::Status
        } else {
            Which::Object
        };
        Self { method, path, which }
    }

    pub(super) fn writes(&self) -> bool {
        self.method != Method::GET
    }

    pub(super) fn is_watch(&self) -> bool {
        self.which == Which::Watch
    }

    /// Which messages it is like.
    pub(super) fn like(&self, replica: usize) -> String {
        // The names of events are random.
        let path = if self.which == Which::Event {
            "events"
        } else {
            &self.path
        };
        format!("{replica} {} {path} {}", self.method, self.is_watch())
    }
}

fn is_lease(path: &str) -> bool {
    path.contains("/coordination.k8s.io/")
}

fn read(path: &str, query: &str) -> Which {
    if query
        .split('&')
        .any(|pair| pair == "watch=true" || pair == "watch=1")
    {
        return Which::Watch;
    }
    // A collection is named by a plural: `…/namespaces/NAMESPACE/PLURAL`, or `/apis/GROUP/VERSION/PLURAL`.
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let prefix = if parts.first() == Some(&"apis") { 3 } else { 2 };
    let rest = parts.get(prefix..).unwrap_or_default();
    let rest = if rest.first() == Some(&"namespaces") && rest.len() > 2 {
        rest.get(2..).unwrap_or_default()
    } else {
        rest
    };
    if rest.len() == 1 { Which::List } else { Which::Get }
}

/// Takes a request apart and back together, for its body is read on the way.
pub(super) fn with_body<B>(parts: Parts, body: B) -> Request<B> {
    Request::from_parts(parts, body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_told_apart() {
        let which = |method: Method, uri: &str| {
            let request = Request::builder().method(method).uri(uri).body(()).unwrap();
            Asked::of(&request.into_parts().0).which
        };
        for (method, uri, expected) in [
            (Method::GET, "/api/v1/namespaces/n/secrets?limit=5", Which::List),
            (
                Method::GET,
                "/api/v1/namespaces/n/secrets?watch=true",
                Which::Watch,
            ),
            (Method::GET, "/api/v1/namespaces/n/secrets/s", Which::Get),
            (Method::GET, "/api/v1/secrets", Which::List),
            (Method::GET, "/apis/g/v1/namespaces/n/widgets/w", Which::Get),
            (Method::GET, "/apis/g/v1/widgets", Which::List),
            (
                Method::PATCH,
                "/apis/g/v1/namespaces/n/widgets/w/status",
                Which::Status,
            ),
            (Method::PATCH, "/apis/g/v1/namespaces/n/widgets/w", Which::Object),
            (
                Method::POST,
                "/apis/events.k8s.io/v1/namespaces/n/events",
                Which::Event,
            ),
            (
                Method::PUT,
                "/apis/coordination.k8s.io/v1/namespaces/n/leases/l",
                Which::Lease,
            ),
        ] {
            assert_eq!(which(method, uri), expected, "{uri}");
        }
    }
}
