//! Traces and numbers to an OpenTelemetry collector: OTLP over HTTP, protobuf.
//!
//! Built only with the feature `otlp`. It speaks through the HTTP and TLS stack that the Kubernetes client brings
//! anyway (hyper, rustls, aws-lc), so the feature adds the protocol's types and no second HTTP client.
//!
//! | file | subject |
//! |---|---|
//! | `address` | where each signal goes |
//! | `traces` | spans, in batches from a thread of the library's own |
//! | `metrics` | everything that `/metrics` shows, at an interval and once more at the end |
//! | `exposition` | the text of `/metrics`, read back |
//! | `message` | the same as the protocol's message |
//! | `collector` | the way to the collector |
//!
//! A collector that is slow or away costs nothing but what it would have been told, and is logged once when it goes
//! and once when it is back.

mod address;
mod collector;
mod exposition;
mod message;
mod metrics;
mod traces;

use opentelemetry::KeyValue;
use opentelemetry_otlp::ExporterBuildError;
use opentelemetry_sdk::Resource;
use thiserror::Error;

pub use address::{Address, Signal};
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
