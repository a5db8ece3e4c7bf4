//! Exports spans as traces.
//!
//! A thread of the library sends them in batches.

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::{level_filters::LevelFilter, warn};
use tracing_subscriber::{Layer as _, filter::Targets};

use super::collector::{Collector, TIMEOUT};
use super::{Address, OtlpError, Signal, resource};
use crate::telemetry::logs::ExtraLayer;

/// Sends the remaining spans when the process ends.
#[derive(Debug)]
pub struct Traces {
    provider: SdkTracerProvider,
}

impl Traces {
    /// Sends the waiting spans, for a few seconds at most.
    pub async fn shutdown(self) {
        // It blocks until the last batch is sent, and that batch is sent on this runtime.
        let sent = tokio::task::spawn_blocking(move || self.provider.shutdown_with_timeout(TIMEOUT)).await;
        if let Ok(Err(error)) = sent {
            warn!(%error, "the last traces were not sent");
        }
    }
}

/// The layer that turns spans into traces, and the handle that sends the last of them. To be called on the Tokio
/// runtime of the requests.
///
/// Sampling, headers and resource attributes come from the usual `OTEL_` variables.
pub fn layer(address: impl Into<Address>, version: &'static str) -> Result<(ExtraLayer, Traces), OtlpError> {
    let exporter = SpanExporter::builder()
        .with_http()
        .with_endpoint(address.into().url(Signal::Traces)?.to_string())
        .with_http_client(Collector::new("traces")?)
        .build()?;
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_resource(resource(version))
        .build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("stanchion"));
    // Our own spans, and the client's requests as their children; not the spans of the export itself.
    let ours = Targets::new()
        .with_default(LevelFilter::INFO)
        .with_target("kube_client::client::builder", LevelFilter::DEBUG)
        .with_targets(
            ["h2", "hyper", "hyper_util", "opentelemetry", "rustls", "tower"]
                .map(|name| (name, LevelFilter::OFF)),
        );
    Ok((layer.with_filter(ours).boxed(), Traces { provider }))
}
