//! The log, and the traces where they are asked for.

use stanchion_kernel::telemetry::logs;
#[cfg(feature = "otlp")]
use stanchion_kernel::telemetry::otlp::{self, Traces};

use super::arguments::Arguments;
use super::error::RunError;

/// What has to be finished when the process ends.
pub(super) struct Telemetry {
    #[cfg(feature = "otlp")]
    traces: Option<Traces>,
}

/// Starts both, on the runtime that is to send the traces.
#[cfg(feature = "otlp")]
pub(super) fn start(arguments: &Arguments) -> Result<Telemetry, RunError> {
    let traces = arguments.otlp_endpoint.as_deref();
    let (layers, traces) = traces
        .map(|endpoint| otlp::layer(endpoint, super::VERSION))
        .transpose()?
        .unzip();
    logs::init(arguments.log_format, &arguments.log, layers.into_iter().collect())?;
    Ok(Telemetry { traces })
}

/// Starts the log.
#[cfg(not(feature = "otlp"))]
pub(super) fn start(arguments: &Arguments) -> Result<Telemetry, RunError> {
    logs::init(arguments.log_format, &arguments.log, Vec::new())?;
    Ok(Telemetry {})
}

impl Telemetry {
    /// Sends what waits to be sent.
    pub(super) async fn finish(self) {
        #[cfg(feature = "otlp")]
        if let Some(traces) = self.traces {
            traces.shutdown().await;
        }
    }
}
