//! A parsed request to the Kubernetes API.

use http::Method;
use serde_json::Value;

/// One request of a client, and its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its number among all requests, from 1.
    pub number: usize,
    /// Its number among the writes, from 1; `None` for a read.
    pub write: Option<usize>,
    /// The HTTP method.
    pub method: Method,
    /// The path, without the query.
    pub path: String,
    /// The query.
    pub query: String,
    /// The object or collection of the request.
    pub target: RequestTarget,
    /// The status code of the server's answer; `None` if the request was not sent or is not answered yet.
    pub served: Option<u16>,
    /// Whether a fault was injected.
    pub disturbed: bool,
}

impl Call {
    /// Whether the server created an object for it.
    pub fn created(&self) -> bool {
        self.served == Some(201)
    }

    /// Whether the server deleted an object, or marked it for deletion, for it.
    pub fn deleted(&self) -> bool {
        self.method == Method::DELETE && matches!(self.served, Some(200 | 202))
    }
}

/// The object or collection that a path names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestTarget {
    /// The API group; empty for the core group.
    pub group: String,
    /// Such as `secrets`.
    pub resource: String,
    /// Empty for cluster-scoped objects.
    pub namespace: String,
    /// Empty for collections.
    pub name: String,
    /// Such as `status`.
    pub subresource: String,
}

impl RequestTarget {
    /// Parses a path, and takes the name of a new object from the request body.
    pub(super) fn of(path: &str, body: &[u8]) -> Self {
        let mut parts = path.trim_matches('/').split('/').map(str::to_owned);
        let group = match parts.next().as_deref() {
            Some("apis") => parts.next().unwrap_or_default(),
            _ => String::new(),
        };
        let mut rest: Vec<String> = parts.skip(1).collect();
        // `namespaces/x` alone, with or without a subresource, is the Namespace x itself.
        let namespaced = rest.first().is_some_and(|first| first == "namespaces")
            && rest
                .get(2)
                .is_some_and(|third| third != "status" && third != "finalize");
        let namespace = if namespaced {
            rest.drain(..2).nth(1).unwrap_or_default()
        } else {
            String::new()
        };
        let mut rest = rest.into_iter();
        let mut next = || rest.next().unwrap_or_default();
        let (resource, mut name, subresource) = (next(), next(), next());
        if name.is_empty() {
            let object: Value = serde_json::from_slice(body).unwrap_or_default();
            object["metadata"]["name"]
                .as_str()
                .unwrap_or_default()
                .clone_into(&mut name);
        }
        Self {
            group,
            resource,
            namespace,
            name,
            subresource,
        }
    }

    /// Whether a POST to it changes nothing.
    pub(super) fn is_review(&self) -> bool {
        self.resource.ends_with("reviews")
    }
}

#[cfg(test)]
mod tests {
    use super::RequestTarget;

    fn target(path: &str, body: &str) -> [String; 5] {
        let target = RequestTarget::of(path, body.as_bytes());
        [
            target.group,
            target.resource,
            target.namespace,
            target.name,
            target.subresource,
        ]
    }

    #[test]
    fn paths_are_taken_apart() {
        let named = r#"{"metadata":{"name":"new"}}"#;
        for (path, body, expected) in [
            (
                "/api/v1/namespaces/n/secrets/s",
                "",
                ["", "secrets", "n", "s", ""],
            ),
            (
                "/api/v1/namespaces/n/secrets",
                named,
                ["", "secrets", "n", "new", ""],
            ),
            ("/api/v1/namespaces/n", "", ["", "namespaces", "", "n", ""]),
            (
                "/api/v1/namespaces/n/status",
                "",
                ["", "namespaces", "", "n", "status"],
            ),
            ("/api/v1/namespaces", named, ["", "namespaces", "", "new", ""]),
            (
                "/apis/apps/v1/namespaces/n/deployments/d/status",
                "",
                ["apps", "deployments", "n", "d", "status"],
            ),
            (
                "/apis/rbac.authorization.k8s.io/v1/clusterroles/c",
                "",
                ["rbac.authorization.k8s.io", "clusterroles", "", "c", ""],
            ),
            ("/version", "", ["", "", "", "", ""]),
        ] {
            assert_eq!(target(path, body), expected, "{path}");
        }
    }
}
