//! Measures the work of an operator after a restart.

use std::path::Path;
use std::time::{Duration, Instant};

use stanchion_bench_env::row;
use tokio::time::sleep;

use crate::setup::BenchSetup;
use crate::{harm, seconds};

/// Enough to reconcile everything.
const WINDOW: Duration = Duration::from_secs(20);

/// Nothing has changed while the operator was down.
pub(crate) async fn in_order(setup: &BenchSetup, binary: &Path) -> bool {
    setup.env.unwritten().await;
    let checkpoint = setup.env.checkpoint();
    let operator = setup.operator(binary);
    sleep(WINDOW).await;
    let counted = setup.env.count(&checkpoint).await;
    drop(operator);
    row(
        "restart: writes, reads",
        &format!("{}, {}", counted.writes, counted.reads),
    );
    if counted.writes > 0 {
        println!(
            "what is in order must not be written again: {:#?}",
            counted.examples
        );
    }
    counted.writes == 0
}

/// Services were deleted and Deployments changed while the operator was down, in every nth project.
pub(crate) async fn with_drift(setup: &BenchSetup, binary: &Path, projects: usize, every: usize) -> bool {
    let harmed: Vec<usize> = (0..projects).step_by(every).collect();
    harm::harm(setup, &harmed).await;
    let start = Instant::now();
    let operator = setup.operator(binary);
    let repaired = harm::repaired(setup, &harmed, start).await;
    row(
        &format!("restart, {} harmed: first, all", harmed.len()),
        &format!("{}, {}", seconds(repaired.first), seconds(repaired.last)),
    );
    // The next measurement starts with running projects.
    setup.running(projects).await;
    setup.env.unwritten().await;
    drop(operator);
    true
}

/// The time of the writes alone. The first project was deleted before.
pub(crate) async fn floor(setup: &BenchSetup, projects: usize) {
    let harmed: Vec<usize> = (1..projects).collect();
    let took = harm::floor(setup, &harmed).await;
    row(
        &format!("the writes alone, {} harmed", harmed.len()),
        &seconds(took),
    );
}
