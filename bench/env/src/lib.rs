//! The environment of the benchmarks: a real control plane, a real PostgreSQL server, the operator as a user starts it,
//! and counters that do not depend on the operator's own metrics.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    clippy::print_stdout,
    reason = "a bench that cannot run says so and ends"
)]

mod connections;
mod env;
mod programs;
mod usage;

use std::process::ExitCode;

pub use env::{BenchEnv, Checkpoint, Counted, DATABASE, OURS, PASSWORD, RIVAL};
pub use programs::Programs;
pub use usage::Usage;

/// The `main` of a bench: parses its arguments, runs it, and exits with 1 if it finds a failure. Times are no failure.
pub fn main<A: clap::Parser>(bench: impl AsyncFnOnce(A) -> bool) -> ExitCode {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    if runtime.block_on(Box::pin(bench(A::parse()))) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Prints one figure.
pub fn row(what: &str, figure: &str) {
    println!("{what:<32}{figure}");
}
