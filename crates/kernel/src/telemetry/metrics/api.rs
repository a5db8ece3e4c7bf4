//! Metrics of the Kubernetes client. Each attempt is counted once.

use std::time::Duration;

use http::{Method, StatusCode};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::Registry,
};

use super::seconds_histogram;
use crate::telemetry::api_calls::Call;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct HttpLabels {
    code: String,
    method: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct CallLabels {
    verb: &'static str,
    resource: String,
    code: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct VerbLabel {
    verb: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct WriteLabels {
    verb: &'static str,
    resource: String,
}

/// Requests to the Kubernetes API.
#[derive(Clone, Debug)]
pub struct ApiMetrics {
    requests: Family<HttpLabels, Counter>,
    calls: Family<CallLabels, Counter>,
    writes: Family<WriteLabels, Counter>,
    duration: Family<VerbLabel, Histogram, fn() -> Histogram>,
}

impl ApiMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            requests: Family::default(),
            calls: Family::default(),
            writes: Family::default(),
            duration: Family::new_with_constructor(seconds_histogram as fn() -> Histogram),
        };
        registry.register(
            "rest_client_requests",
            "Requests to the Kubernetes API by status code and method",
            metrics.requests.clone(),
        );
        registry.register(
            "rest_client_request_duration_seconds",
            "Time until the Kubernetes API began to answer",
            metrics.duration.clone(),
        );
        registry.register(
            "stanchion_api_requests",
            "Requests to the Kubernetes API by verb, resource and status code",
            metrics.calls.clone(),
        );
        registry.register(
            "stanchion_api_writes",
            "Requests that asked the Kubernetes API to change something, whatever the answer was",
            metrics.writes.clone(),
        );
        metrics
    }

    /// Counts one attempt. Without a code there was no response, which client-go calls `<error>`.
    pub(crate) fn called(&self, method: &Method, call: &Call, code: Option<StatusCode>, took: Duration) {
        let code = code.map_or_else(|| "<error>".to_owned(), |code| code.as_str().to_owned());
        let verb = call.verb.as_str();
        let http = HttpLabels {
            code: code.clone(),
            method: method.to_string(),
        };
        self.requests.get_or_create(&http).inc();
        let labels = CallLabels {
            verb,
            resource: call.resource.clone(),
            code,
        };
        self.calls.get_or_create(&labels).inc();
        self.duration
            .get_or_create(&VerbLabel { verb })
            .observe(took.as_secs_f64());
        if call.is_write() {
            self.writes
                .get_or_create(&WriteLabels {
                    verb,
                    resource: call.resource.clone(),
                })
                .inc();
        }
    }
}
