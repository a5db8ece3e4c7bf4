//! Exports traces and metrics to an OpenTelemetry collector: OTLP over HTTP, protobuf.
//!
//! Built only with the feature `otlp`. It uses the HTTP and TLS stack of the Kubernetes client (hyper, rustls, aws-lc),
//! so the feature adds the protocol's types and no second HTTP client.
//!
//! | file | subject |
//! |---|---|
//! | `address` | the address of each signal |
//! | `traces` | spans, in batches from a thread of the library |
//! | `metrics` | everything at `/metrics`, at an interval and once more at the end |
//! | `exposition` | parses the text of `/metrics` |
//! | `message` | converts it to OTLP messages |
//! | `collector` | the HTTP client |
//!
//! If a collector is slow or down, only its data is lost, and the failure is logged once when it begins and once when
//! it ends.

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

/// Why the export could not be started.
#[derive(Debug, Error)]
pub enum OtlpError {
    /// The address is invalid.
    #[error("\"{endpoint}\" is not the address of a collector; write it like http://collector:4318")]
    Endpoint {
        /// The given address.
        endpoint: String,
    },
    /// The system's certificates cannot be read.
    #[error("cannot read the system's certificates for the collector: {0}")]
    Certificates(#[source] std::io::Error),
    /// The library rejects its settings, which may come from `OTEL_` variables.
    #[error("cannot set up the export of traces: {0}; check the OTEL_ variables")]
    Exporter(#[from] ExporterBuildError),
    /// A variable has an invalid value.
    #[error("{name} is \"{value}\"; {rule}")]
    Variable {
        /// Its name.
        name: &'static str,
        /// The value; `[hidden]` if it may be a secret.
        value: String,
        /// The allowed values.
        rule: &'static str,
    },
}

/// The resource attributes. `OTEL_RESOURCE_ATTRIBUTES` adds more.
fn resource(version: &'static str) -> Resource {
    Resource::builder()
        .with_service_name("stanchion")
        .with_attribute(KeyValue::new("service.version", version))
        .build()
}
