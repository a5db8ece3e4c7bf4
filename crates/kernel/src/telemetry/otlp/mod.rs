//! Traces and numbers to an OpenTelemetry collector: OTLP over HTTP, protobuf.
//!
//! Built only with the feature `otlp`. It speaks through the HTTP and TLS stack that the Kubernetes client brings
//! anyway (hyper, rustls, aws-lc), so the feature adds the protocol's types and no second HTTP client.
//!
//! | file | subject |
//! |---|---|
//! | `traces` | spans, in batches from a thread of the library's own |
//! | `metrics` | everything that `/metrics` shows, at an interval and once more at the end |
//! | `exposition` | the text of `/metrics`, read back |
//! | `message` | the same as the protocol's message |
//! | `collector` | the way to the collector |
//!
//! A collector that is slow or away costs nothing but what it would have been told, and is logged once when it goes
//! and once when it is back.

mod collector;
mod exposition;
mod message;
mod metrics;
mod traces;

use http::Uri;
use opentelemetry::KeyValue;
use opentelemetry_otlp::ExporterBuildError;
use opentelemetry_sdk::Resource;
use thiserror::Error;

pub use metrics::Export;
pub use traces::{Traces, layer};

/// Why nothing is sent.
#[derive(Debug, Error)]
pub enum OtlpError {
    /// The address is not one.
    #[error("\"{endpoint}\" is not the address of a collector; write it like http://collector:4318")]
    Endpoint {
        /// As it was given.
        endpoint: String,
    },
    /// The system's certificates cannot be read.
    #[error("cannot read the system's certificates for the collector: {0}")]
    Certificates(#[source] std::io::Error),
    /// The library refuses its settings, which may come from `OTEL_` variables.
    #[error("cannot set up the export of traces: {0}; check the OTEL_ variables")]
    Exporter(#[from] ExporterBuildError),
    /// A variable says what cannot be.
    #[error("{name} is \"{value}\"; {rule}")]
    Variable {
        /// Its name.
        name: &'static str,
        /// What it says; `[hidden]` where that may be a secret.
        value: String,
        /// What it may say.
        rule: &'static str,
    },
}

/// Who speaks. More is added from `OTEL_RESOURCE_ATTRIBUTES`.
fn resource(version: &'static str) -> Resource {
    Resource::builder()
        .with_service_name("stanchion")
        .with_attribute(KeyValue::new("service.version", version))
        .build()
}

/// Where a signal (`traces`, `metrics`) goes. The address is the collector's; that of its traces means the same.
fn signal_url(endpoint: &str, signal: &str) -> Result<Uri, OtlpError> {
    let wrong = || OtlpError::Endpoint {
        endpoint: endpoint.to_owned(),
    };
    let uri: Uri = endpoint.parse().map_err(|_| wrong())?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none() {
        return Err(wrong());
    }
    let base = endpoint.trim_end_matches('/');
    let base = base.strip_suffix("/v1/traces").unwrap_or(base);
    format!("{base}/v1/{signal}").parse().map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_signal_has_its_path_below_the_collectors_address() {
        let url = |endpoint, signal| signal_url(endpoint, signal).map(|url| url.to_string());
        for (endpoint, signal, expected) in [
            (
                "http://collector:4318",
                "traces",
                "http://collector:4318/v1/traces",
            ),
            (
                "http://collector:4318/",
                "metrics",
                "http://collector:4318/v1/metrics",
            ),
            (
                "https://example.com/otlp",
                "metrics",
                "https://example.com/otlp/v1/metrics",
            ),
            (
                "https://example.com/otlp/v1/traces",
                "traces",
                "https://example.com/otlp/v1/traces",
            ),
            (
                "https://example.com/otlp/v1/traces",
                "metrics",
                "https://example.com/otlp/v1/metrics",
            ),
        ] {
            assert_eq!(url(endpoint, signal).unwrap(), expected);
        }
    }

    #[test]
    fn what_is_no_address_is_refused_with_an_example() {
        for endpoint in ["", "collector:4318", "grpc://collector:4317", "not an address"] {
            let error = signal_url(endpoint, "traces").unwrap_err().to_string();
            assert!(error.contains("http://collector:4318"), "{endpoint}: {error}");
        }
    }
}
