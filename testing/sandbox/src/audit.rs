//! A log of requests in the format of the original's audit log, one JSON line per request, so that the same assertions
//! (how many writes? any 403?) work on both.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use bytes::Bytes;
use http::Request;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::auth::User;
use crate::clock::Clock;
use crate::request::{Query, Target};

/// Lines that are kept in memory.
const KEPT: usize = 50_000;

#[derive(Debug, Default)]
pub(crate) struct Audit {
    lines: Mutex<(VecDeque<String>, Option<File>)>,
}

impl Audit {
    pub(crate) fn to_file(path: &Path) -> std::io::Result<Self> {
        Ok(Self {
            lines: Mutex::new((VecDeque::new(), Some(File::create(path)?))),
        })
    }

    /// The log line of a request, before the response. `target` is set for resource requests.
    pub(crate) fn line(
        clock: &Clock,
        user: &User,
        request: &Request<Bytes>,
        target: Option<&Target>,
        query: &Query,
    ) -> Value {
        let agent = request
            .headers()
            .get("user-agent")
            .and_then(|value| value.to_str().ok());
        let method = request.method().as_str().to_lowercase();
        let verb = target.and_then(|target| target.verb(request.method(), query));
        let verb = verb.map_or(method, |verb| verb.name().to_owned());
        let mut line = json!({
            "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata", "auditID": clock.uid(),
            "stage": "ResponseComplete",
            "requestURI": request.uri().path_and_query().map(http::uri::PathAndQuery::as_str),
            "verb": verb, "user": user.to_value(), "userAgent": agent.unwrap_or_default(),
            "requestReceivedTimestamp": clock.now().to_string(),
        });
        let Some(target) = target else { return line };
        let mut object = json!({"resource": target.plural, "apiVersion": target.version});
        for (key, value) in [
            ("namespace", &target.namespace),
            ("name", &target.name),
            ("apiGroup", &target.group),
            ("subresource", &target.subresource),
        ] {
            if !value.is_empty() {
                object[key] = json!(value);
            }
        }
        line["objectRef"] = object;
        line
    }

    pub(crate) fn finish(&self, mut line: Value, code: u16, clock: &Clock) {
        line["responseStatus"] = json!({"metadata": {}, "code": code});
        line["stageTimestamp"] = json!(clock.now().to_string());
        let line = line.to_string();
        let mut lines = self.lines.lock();
        if let Some(file) = &mut lines.1 {
            let _ = writeln!(file, "{line}");
        }
        if lines.0.len() == KEPT {
            lines.0.pop_front();
        }
        lines.0.push_back(line);
    }

    pub(crate) fn lines(&self) -> Vec<Value> {
        self.lines
            .lock()
            .0
            .iter()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }
}
