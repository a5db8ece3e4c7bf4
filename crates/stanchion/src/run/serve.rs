//! The servers for health checks and metrics.

use stanchion_kernel::driver::Readiness;
use stanchion_kernel::telemetry::Metrics;
use stanchion_kernel::telemetry::health::{self, BindError, Bound, Check, Health};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use super::arguments::Arguments;

/// Both servers, with bound addresses, not answering yet.
pub(super) struct Listeners {
    probes: Bound,
    scraped: Bound,
}

impl Listeners {
    /// Binds the addresses. [`Listeners::open`] starts to answer.
    pub(super) async fn bind(
        arguments: &Arguments,
        health: Health,
        metrics: Metrics,
    ) -> Result<Self, BindError> {
        Ok(Self {
            probes: health::bind("health", arguments.health_addr, health::probes(health)).await?,
            scraped: health::bind("metrics", arguments.metrics_addr, health::scraped(metrics)).await?,
        })
    }

    /// Serves until the token is cancelled.
    pub(super) fn open(self, servers: &mut JoinSet<()>, shutdown: &CancellationToken) {
        for (purpose, bound) in [("health", self.probes), ("metrics", self.scraped)] {
            let shutdown = shutdown.clone();
            info!(addr = %bound.addr(), "{purpose} is answered");
            servers.spawn(async move {
                if let Err(error) = bound.serve(shutdown).await {
                    error!(%error, "{purpose} is no longer answered");
                }
            });
        }
    }
}

/// Keeps `/readyz` up to date, and never ends.
pub(super) async fn follow(readiness: Readiness, ready: Check) {
    let mut changes = readiness.changes();
    loop {
        changes.borrow_and_update();
        let missing: Vec<String> = readiness
            .missing()
            .into_iter()
            .map(|(name, why)| format!("{name}: {why}"))
            .collect();
        if missing.is_empty() {
            ready.pass();
        } else {
            ready.fail(missing.join("; "));
        }
        // `readiness` has the sender, so this cannot fail.
        let _ = changes.changed().await;
    }
}
