//! Makes streamed lists consistent.
//!
//! kube streams a list with `resourceVersion=0`, which means any state that the API server has in its cache. After a
//! change of the leader or of the API server it may be older than what the former leader has acted on. Without a
//! version the list is at least as new as the request, as that of a paged list and of client-go.

use http::Request;
use http::uri::PathAndQuery;
use kube::client::Body;

/// The request without the version, if it is for a streamed list.
pub(super) fn consistent(mut request: Request<Body>) -> Request<Body> {
    let query = request.uri().query().unwrap_or_default();
    if query.split('&').any(|pair| pair == "sendInitialEvents=true") {
        let others: Vec<&str> = query
            .split('&')
            .filter(|pair| *pair != "resourceVersion=0")
            .collect();
        let uri = format!("{}?{}", request.uri().path(), others.join("&"));
        let mut parts = request.uri().clone().into_parts();
        parts.path_and_query = PathAndQuery::try_from(uri).ok();
        if let Ok(uri) = parts.try_into() {
            *request.uri_mut() = uri;
        }
    }
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_streamed_list_asks_for_the_present_state_and_a_watch_resumes_where_it_stopped() {
        let sent = |uri: &str| {
            let request = Request::get(uri).body(Body::empty()).unwrap();
            consistent(request).uri().to_string()
        };
        let initial = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
        for base in [
            "/api/v1/pods?watch=true",
            "https://host:6443/api/v1/pods?watch=true",
        ] {
            let expected = format!("{base}{initial}&allowWatchBookmarks=true");
            let asked = format!("{base}{initial}&resourceVersion=0&allowWatchBookmarks=true");
            assert_eq!(sent(&asked), expected);
        }
        for other in ["/api/v1/pods?watch=true&resourceVersion=0", "/api/v1/pods"] {
            assert_eq!(sent(other), other);
        }
    }
}
