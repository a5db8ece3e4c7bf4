//! The audit log, as a list of requests to assert on.
//!
//! All tests of a run write into one log: filter by user or namespace before counting.

use std::{
    collections::HashSet,
    fs::{self, File},
    io::{Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
    time::Duration,
};

use serde::Deserialize;

use super::Cluster;
use crate::{unique, wait};

const FENCE_DEADLINE: Duration = Duration::from_secs(30);

/// One request to the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The user: `admin`, or [`super::User::name`].
    pub user: String,
    /// The client's `User-Agent`.
    pub user_agent: String,
    /// get, list, watch, create, update, patch, delete, deletecollection.
    pub verb: String,
    /// Path and query.
    pub uri: String,
    /// The API group; empty for the core group.
    pub group: String,
    /// Such as `secrets`.
    pub resource: String,
    /// Such as `status`.
    pub subresource: String,
    /// Empty for cluster-scoped objects.
    pub namespace: String,
    /// Empty for lists, and for objects whose name the server generates.
    pub name: String,
    /// The HTTP status of the answer.
    pub code: u16,
}

impl Request {
    /// Whether the request is a write.
    pub fn is_write(&self) -> bool {
        matches!(
            self.verb.as_str(),
            "create" | "update" | "patch" | "delete" | "deletecollection"
        )
    }
}

/// The requests since a point in time.
#[derive(Clone, Debug)]
pub struct Audit<'a> {
    cluster: &'a Cluster,
    log: PathBuf,
    start: u64,
}

impl<'a> Audit<'a> {
    pub(super) fn from_now(cluster: &'a Cluster, log: &Path) -> Self {
        Self {
            cluster,
            log: log.to_owned(),
            start: fs::metadata(log).map_or(0, |log| log.len()),
        }
    }

    /// Every request that was answered before this call.
    pub async fn requests(&self) -> Requests {
        // The server answers before it logs. Once a request of our own is in the log, all requests that were answered
        // before it are, too.
        let fence = unique::name("/version?audit-fence=");
        let request = http::Request::get(&fence)
            .body(Vec::new())
            .expect("a plain request");
        self.cluster
            .client()
            .await
            .request_text(request)
            .await
            .expect("the API server answers");
        wait::eventually(FENCE_DEADLINE, "the audit log to catch up", async || {
            let requests = parse(&self.read());
            requests
                .iter()
                .any(|request| request.uri == fence)
                .then_some(Requests(requests))
        })
        .await
    }

    fn read(&self) -> String {
        let mut text = Vec::new();
        if let Ok(mut log) = File::open(&self.log)
            && log.seek(SeekFrom::Start(self.start)).is_ok()
        {
            let _ = log.read_to_end(&mut text);
        }
        String::from_utf8_lossy(&text).into_owned()
    }
}

/// A list of requests, to be filtered step by step.
#[derive(Clone, Debug, Default)]
pub struct Requests(Vec<Request>);

impl Requests {
    /// The requests of one user.
    #[must_use]
    pub fn of_user(self, user: &str) -> Self {
        self.filter(|request| request.user == user)
    }

    /// The requests in one namespace.
    #[must_use]
    pub fn in_namespace(self, namespace: &str) -> Self {
        self.filter(|request| request.namespace == namespace)
    }

    /// The requests with one verb.
    #[must_use]
    pub fn with_verb(self, verb: &str) -> Self {
        self.filter(|request| request.verb == verb)
    }

    /// The writes.
    #[must_use]
    pub fn writes(self) -> Self {
        self.filter(Request::is_write)
    }

    /// The requests that RBAC refused.
    #[must_use]
    pub fn forbidden(self) -> Self {
        self.filter(|request| request.code == 403)
    }

    /// The requests that `keep` accepts.
    #[must_use]
    pub fn filter(mut self, keep: impl Fn(&Request) -> bool) -> Self {
        self.0.retain(keep);
        self
    }

    /// The number of requests.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The requests, in the order of their answers.
    pub fn list(&self) -> &[Request] {
        &self.0
    }
}

/// An entry in the format of the log.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    #[serde(rename = "auditID")]
    id: String,
    #[serde(rename = "requestURI")]
    uri: String,
    verb: String,
    user: LineUser,
    #[serde(default)]
    user_agent: String,
    #[serde(default)]
    object_ref: LineObject,
    #[serde(default)]
    response_status: LineStatus,
}

#[derive(Deserialize)]
struct LineUser {
    username: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct LineObject {
    api_group: String,
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct LineStatus {
    code: u16,
}

/// A watch is logged when it starts and again when it ends: its first line counts.
fn parse(log: &str) -> Vec<Request> {
    let mut known = HashSet::new();
    let lines = log
        .lines()
        .filter_map(|line| serde_json::from_str::<Line>(line).ok());
    lines
        .filter(|line| known.insert(line.id.clone()))
        .map(|line| Request {
            user: line.user.username,
            user_agent: line.user_agent,
            verb: line.verb,
            uri: line.uri,
            group: line.object_ref.api_group,
            resource: line.object_ref.resource,
            subresource: line.object_ref.subresource,
            namespace: line.object_ref.namespace,
            name: line.object_ref.name,
            code: line.response_status.code,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn a_watch_counts_once_and_a_half_written_line_not_at_all() {
        let log = r#"{"auditID":"1","stage":"ResponseStarted","requestURI":"/w","verb":"watch","user":{"username":"ann"},"responseStatus":{"code":200}}
{"auditID":"2","stage":"ResponseComplete","requestURI":"/s","verb":"create","user":{"username":"ann"},"userAgent":"x","objectRef":{"resource":"secrets","namespace":"n","name":"s","apiVersion":"v1"},"responseStatus":{"metadata":{},"status":"Failure","code":403}}
{"auditID":"1","stage":"ResponseComplete","requestURI":"/w","verb":"watch","user":{"username":"ann"},"responseStatus":{"code":200}}
{"auditID":"3","stage":"Resp"#;
        let requests = parse(log);
        assert_eq!(requests.len(), 2);
        assert!(!requests[0].is_write());
        assert!(requests[1].is_write());
        assert_eq!(
            (requests[1].resource.as_str(), requests[1].code),
            ("secrets", 403)
        );
    }
}
