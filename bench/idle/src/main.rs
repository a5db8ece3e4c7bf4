//! Measures the cost of many idle objects: the operator as a user starts it, on a real control plane and a real
//! PostgreSQL server, with N converged `PostgresUser`s.
//!
//!     cargo run -p stanchion-bench-idle -- --binary target/release/stanchion [--objects 1000] [--seconds 60]
//!
//! The benchmark counts the operator's requests in the API server's audit log and its statements in PostgreSQL's log,
//! so that nothing depends on the operator's own metrics. A write or a statement is a failure: the program then exits
//! with 1. Times are never a failure.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a bench that cannot run says so and ends"
)]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use stanchion_bench_env::{BenchEnv, Usage, row};
use tokio::time::sleep;

/// What to measure.
#[derive(Debug, Parser)]
struct Arguments {
    /// Path of the operator
    #[arg(long, value_name = "FILE")]
    binary: PathBuf,
    /// Number of objects
    #[arg(long, default_value_t = 1000)]
    objects: usize,
    /// Duration of the idle phase in seconds
    #[arg(long, default_value_t = 60)]
    seconds: u64,
}

fn main() -> ExitCode {
    stanchion_bench_env::main(bench)
}

/// Runs the bench; returns whether it found no failure.
async fn bench(arguments: Arguments) -> bool {
    let Arguments {
        binary,
        objects,
        seconds,
    } = arguments;
    let env = BenchEnv::new("idle").await;
    env.create_users(0..objects).await;

    let start = Instant::now();
    let operator = env.operator(&binary);
    env.users_ready(objects).await;
    let took = start.elapsed().as_secs_f64();
    row("objects", &objects.to_string());
    let rate = f64::from(u32::try_from(objects).unwrap_or(u32::MAX)) / took;
    row(
        "made from nothing in",
        &format!("{took:.1} s ({rate:.0} a second)"),
    );
    env.quiet().await;

    let (checkpoint, before) = (env.checkpoint(), Usage::of(operator.pid()));
    sleep(Duration::from_secs(seconds)).await;
    let after = Usage::of(operator.pid());
    let counted = env.count(&checkpoint).await;
    let cpu = after.cpu.saturating_sub(before.cpu).as_secs_f64();
    row("nothing happened for", &format!("{seconds} s"));
    row("API writes", &counted.writes.to_string());
    row("API reads", &counted.reads.to_string());
    row("SQL statements", &counted.statements.to_string());
    row("CPU", &format!("{cpu:.2} s"));
    row("memory", &after.memory());
    let is_idle = counted.writes == 0 && counted.statements == 0;
    if !is_idle {
        println!(
            "an idle operator must neither write nor ask: {:#?}",
            counted.examples
        );
    }
    is_idle
}
