//! What a dead replica and dead servers cost.
//!
//!     cargo run -p stanchion-bench-faults -- --binary target/release/stanchion [--rounds 5] [--only servers]
//!
//! Three replicas share the work under load: users are changed all the time. The bench kills the leader, ends it, or
//! freezes it and lets it go on, and measures the time until a change is followed by another replica. PostgreSQL's log
//! and the audit log of the API server show which replica did what: changes and writes of the old leader after the first
//! work of the new leader fail the bench. A replica that wakes may still read for a moment.
//!
//! Then one server refuses connections, one has a lock that every change of a role waits for, one accepts connections and
//! never answers, and one stops answering on open sessions. The bench measures changes of users on another, healthy server
//! from the first moment. A change that takes longer than the goal fails it; the times of takeovers are figures only.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a bench that cannot run says so and ends"
)]

mod objects;
mod replicas;
mod servers;
mod takeover;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

#[derive(Debug, Parser)]
struct Arguments {
    /// The operator
    #[arg(long, value_name = "FILE")]
    binary: PathBuf,
    /// How often each signal is sent
    #[arg(long, value_name = "N", default_value_t = 5)]
    rounds: usize,
    /// Run this part alone: takeover or servers
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
}

fn main() -> ExitCode {
    stanchion_bench_env::main(bench)
}

/// Runs the bench; returns whether it found no failure.
async fn bench(arguments: Arguments) -> bool {
    let chosen = |name: &str| arguments.only.as_ref().is_none_or(|only| only == name);
    let mut held = true;
    if chosen("takeover") {
        held &= takeover::run(&arguments.binary, arguments.rounds).await;
    }
    if chosen("servers") {
        held &= servers::run(&arguments.binary).await;
    }
    held
}
