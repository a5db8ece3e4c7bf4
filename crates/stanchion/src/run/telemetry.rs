//! The log, and the traces where they are asked for and compiled in.

use stanchion_kernel::telemetry::logs::{self, ExtraLayer};

use super::arguments::Arguments;
use super::error::RunError;

pub(super) use self::traces::Telemetry;

/// Starts both, on the runtime that is to send the traces.
pub(super) fn start(arguments: &Arguments) -> Result<Telemetry, RunError> {
    let (layers, telemetry): (Vec<ExtraLayer>, _) = traces::start(arguments)?;
    logs::init(arguments.log_format, &arguments.log, layers)?;
    Ok(telemetry)
}

#[cfg(feature = "otlp")]
mod traces {
    use stanchion_kernel::telemetry::otlp::{self, Traces};

    use super::{Arguments, ExtraLayer, RunError};
    use crate::run::VERSION;

    /// What has to be finished when the process ends.
    pub(in crate::run) struct Telemetry(Option<Traces>);

    pub(super) fn start(arguments: &Arguments) -> Result<(Vec<ExtraLayer>, Telemetry), RunError> {
        let endpoint = arguments.otlp_endpoint.as_deref();
        let started = endpoint
            .map(|endpoint| otlp::layer(endpoint, VERSION))
            .transpose()?;
        let (layer, traces) = started.unzip();
        Ok((layer.into_iter().collect(), Telemetry(traces)))
    }

    impl Telemetry {
        /// Sends what waits to be sent.
        pub(in crate::run) async fn finish(self) {
            if let Some(traces) = self.0 {
                traces.shutdown().await;
            }
        }
    }
}

#[cfg(not(feature = "otlp"))]
mod traces {
    use super::{Arguments, ExtraLayer, RunError};

    /// Nothing has to be finished when the process ends.
    pub(in crate::run) struct Telemetry;

    #[allow(clippy::unnecessary_wraps, reason = "with traces it can fail")]
    pub(super) fn start(_: &Arguments) -> Result<(Vec<ExtraLayer>, Telemetry), RunError> {
        Ok((Vec::new(), Telemetry))
    }

    impl Telemetry {
        #[allow(clippy::unused_self, reason = "with traces there is something to send")]
        pub(in crate::run) fn finish(self) -> std::future::Ready<()> {
            std::future::ready(())
        }
    }
}
