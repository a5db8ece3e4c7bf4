//! The log, and traces and metrics for a collector if they are enabled and compiled in.

use stanchion_kernel::telemetry::logs::{self, ExtraLayer};

use super::arguments::Arguments;
use super::error::RunError;

pub(super) use self::collector::{Telemetry, export};

/// Starts the log and the traces, on the runtime that sends them.
pub(super) fn start(arguments: &Arguments) -> Result<Telemetry, RunError> {
    let (layers, telemetry): (Vec<ExtraLayer>, _) = collector::start(arguments)?;
    logs::init(arguments.log_format, &arguments.log, layers)?;
    Ok(telemetry)
}

#[cfg(feature = "otlp")]
mod collector {
    use stanchion_kernel::telemetry::Metrics;
    use stanchion_kernel::telemetry::otlp::{self, Address, Export, Signal, Traces};
    use tokio::task::JoinSet;
    use tokio_util::sync::CancellationToken;

    use super::{Arguments, ExtraLayer, RunError};
    use crate::run::VERSION;

    /// The traces to flush when the process ends.
    pub(in crate::run) struct Telemetry(Option<Traces>);

    pub(super) fn start(arguments: &Arguments) -> Result<(Vec<ExtraLayer>, Telemetry), RunError> {
        let started = address(arguments, Signal::Traces)
            .map(|address| otlp::layer(address, VERSION))
            .transpose()?;
        let (layer, traces) = started.unzip();
        Ok((layer.into_iter().collect(), Telemetry(traces)))
    }

    fn address(arguments: &Arguments, signal: Signal) -> Option<Address> {
        Address::of(signal, arguments.otlp_endpoint.as_deref(), |name| {
            std::env::var(name).ok()
        })
    }

    /// Exports the metrics until the token is cancelled.
    pub(in crate::run) fn export(
        arguments: &Arguments,
        metrics: &Metrics,
        servers: &mut JoinSet<()>,
        closing: &CancellationToken,
    ) -> Result<(), RunError> {
        let export = address(arguments, Signal::Metrics)
            .map(|address| Export::new(metrics.clone(), address, VERSION))
            .transpose()?;
        if let Some(export) = export.flatten() {
            servers.spawn(export.run(closing.clone()));
        }
        Ok(())
    }

    impl Telemetry {
        /// Sends the waiting data.
        pub(in crate::run) async fn finish(self) {
            if let Some(traces) = self.0 {
                traces.shutdown().await;
            }
        }
    }
}

#[cfg(not(feature = "otlp"))]
mod collector {
    use stanchion_kernel::telemetry::Metrics;
    use tokio::task::JoinSet;
    use tokio_util::sync::CancellationToken;

    use super::{Arguments, ExtraLayer, RunError};

    /// Nothing to flush when the process ends.
    pub(in crate::run) struct Telemetry;

    #[allow(clippy::unnecessary_wraps, reason = "with traces it can fail")]
    pub(super) fn start(_: &Arguments) -> Result<(Vec<ExtraLayer>, Telemetry), RunError> {
        Ok((Vec::new(), Telemetry))
    }

    #[allow(clippy::unnecessary_wraps, reason = "with a collector it can fail")]
    pub(in crate::run) fn export(
        _: &Arguments,
        _: &Metrics,
        _: &mut JoinSet<()>,
        _: &CancellationToken,
    ) -> Result<(), RunError> {
        Ok(())
    }

    impl Telemetry {
        #[allow(clippy::unused_self, reason = "with traces there is something to send")]
        pub(in crate::run) fn finish(self) -> std::future::Ready<()> {
            std::future::ready(())
        }
    }
}
