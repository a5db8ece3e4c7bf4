//! Measures the cost of many Supabase projects: create, idle, change, restart, delete.
//!
//!     cargo run -p stanchion-bench-supabase -- --binary target/release/stanchion [--projects 100] [--seconds 60] \
//!         [--only creation]
//!
//! The operator runs as a user starts it, on a real control plane, with a real S3 server and a separate database for
//! each project, which it initialises. Requests are counted in the API server's audit log. A write of an idle operator,
//! or of one that was restarted and found everything converged, is a failure: the program then exits with 1. Times are
//! never a failure.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a bench that cannot run says so and ends"
)]

mod changes;
mod floor;
mod harm;
mod restarts;
mod setup;
mod timeline;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};
use jiff::Timestamp;
use setup::BenchSetup;
use stanchion_bench_env::{Programs, Usage, row};
use tokio::time::sleep;

/// What to measure.
#[derive(Debug, Parser)]
struct Arguments {
    /// Path of the operator
    #[arg(long, value_name = "FILE")]
    binary: PathBuf,
    /// Number of projects
    #[arg(long, default_value_t = 100)]
    projects: usize,
    /// Duration of the idle phase in seconds
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Measure only this part
    #[arg(long)]
    only: Option<Part>,
}

/// A part of the bench that can be measured alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The creation, and the time that the cluster alone needs
    Creation,
    /// Restarts, after an unmeasured creation
    Restarts,
}

fn main() -> ExitCode {
    stanchion_bench_env::main(bench)
}

/// Runs the bench; returns whether it found no failure.
async fn bench(arguments: Arguments) -> bool {
    let Arguments {
        binary,
        projects,
        seconds,
        only,
    } = arguments;
    let setup = BenchSetup::new(projects).await;
    let operator = setup.operator(&binary);
    // The cost of the start does not belong to a project.
    setup.env.unwritten().await;
    let mut kept = vec![made(&setup, projects, operator.pid()).await];
    if only.is_none() {
        kept.push(idle(&setup, seconds, operator.pid()).await);
        kept.push(changes::measure(&setup, projects).await);
    }
    drop(operator);
    if only != Some(Part::Creation) {
        kept.extend([
            restarts::in_order(&setup, &binary).await,
            restarts::with_drift(&setup, &binary, projects, 10).await,
            restarts::with_drift(&setup, &binary, projects, 1).await,
            changes::deletion(&setup, &binary).await,
        ]);
        restarts::floor(&setup, projects).await;
    }
    // Its cluster would disturb the next one.
    drop(setup);
    if only != Some(Part::Restarts) {
        floor::measure(&binary, projects).await;
    }
    kept.into_iter().all(|kept| kept)
}

/// Creates the projects.
async fn made(setup: &BenchSetup, projects: usize, pid: u32) -> bool {
    let (checkpoint, start) = (setup.env.checkpoint(), Instant::now());
    let (began, before) = (Timestamp::now(), Programs::now());
    setup.create(projects).await;
    setup.running(1).await;
    let first = start.elapsed();
    setup.running(projects).await;
    let (took, usage, programs) = (start.elapsed(), Usage::of(pid), Programs::now());
    setup.env.unwritten().await;
    let counted = setup.env.count(&checkpoint).await;
    let count = f64::from(u32::try_from(projects).expect("a count"));
    let calls = f64::from(u32::try_from(counted.writes + counted.reads).expect("a count"));
    row("projects", &projects.to_string());
    row("first running after", &seconds(first));
    row("all running after", &seconds(took));
    timeline::print(setup, began).await;
    programs.print_since(&before);
    row(
        "API calls a project",
        &format!("{:.1} ({} writes in all)", calls / count, counted.writes),
    );
    row("CPU for it", &seconds(usage.cpu));
    memory(pid);
    true
}

/// The idle phase.
async fn idle(setup: &BenchSetup, during: u64, pid: u32) -> bool {
    let (checkpoint, before) = (setup.env.checkpoint(), Usage::of(pid));
    sleep(Duration::from_secs(during)).await;
    let counted = setup.env.count(&checkpoint).await;
    let cpu = Usage::of(pid).cpu.saturating_sub(before.cpu);
    row("nothing happened for", &format!("{during} s"));
    row(
        "API writes, reads, CPU",
        &format!("{}, {}, {}", counted.writes, counted.reads, seconds(cpu)),
    );
    memory(pid);
    if counted.writes > 0 {
        println!("an idle operator must not write: {:#?}", counted.examples);
    }
    counted.writes == 0
}

fn memory(pid: u32) {
    row("memory", &Usage::of(pid).memory());
}

pub(crate) fn seconds(duration: Duration) -> String {
    format!("{:.2} s", duration.as_secs_f64())
}
