//! The driver on an in-memory API server with a paused clock: an operator's hours take milliseconds, and tests can
//! check requeue times exactly.

mod backoff;
mod concurrency;
mod deadline;
mod fairness;
mod gone;
mod memory;
mod panics;
mod readiness;
mod reads;
mod relist;
mod shutdown;
mod sizes;

use std::time::Duration;

use stanchion_kernel::driver::{Readiness, Settings};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use crate::telemetry::scrape::Scrape;
use crate::test_env::server::Server;
use crate::test_env::{Widget, WidgetSpec};

/// Longer than anything here takes by this clock, which costs no real time.
const LONG: Duration = Duration::from_mins(20);

/// An operator that runs until it is dropped.
struct Operator {
    readiness: Readiness,
    task: AbortOnDropHandle<()>,
}

/// Starts the toy on a server.
fn start(server: &Server, settings: Settings) -> Operator {
    let operator = server.operator(settings);
    let readiness = operator.readiness();
    let task = AbortOnDropHandle::new(tokio::spawn(operator.run()));
    Operator { readiness, task }
}

/// A widget of this size and nothing else.
fn sized(size: u32) -> WidgetSpec {
    WidgetSpec {
        size,
        ..WidgetSpec::default()
    }
}

impl Server {
    /// Waits until a widget satisfies a condition, and returns how long that took.
    async fn until(&self, name: &str, condition: impl Fn(&Widget) -> bool) -> Duration {
        let start = Instant::now();
        let met = async {
            while !condition(&self.get(name)) {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(LONG, met)
            .await
            .unwrap_or_else(|_| panic!("{name}: {:#?}", self.get(name)));
        start.elapsed()
    }

    /// Waits until this many passes have begun, and returns when, from the start of the wait.
    async fn until_passes(&self, name: &str, passes: usize) -> Duration {
        self.until(name, |_| self.world.passes(name) >= passes).await
    }

    fn scrape(&self) -> Scrape {
        Scrape::parse(&self.metrics.encode())
    }
}
