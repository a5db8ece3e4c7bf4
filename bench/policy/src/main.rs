//! Measures the cost of policies: until all are Ready, and then idle with an interval of a minute.
//!
//!     cargo run -p stanchion-bench-policy -- --binary target/release/stanchion
//!
//! The benchmark measures 20 and 100 policies on 1 and on 10 databases, each policy with two schemas and four generated
//! roles. The operator runs as a process with its own user on a real control plane; its requests are counted in the API
//! server's audit log and its statements in PostgreSQL's log, so that nothing depends on an operator's own metrics. A
//! request of an idle operator, or more than four statements per policy and minute, is a failure: the program then
//! exits with 1. Times are never a failure.
//!
//! With `--rival` the original operator does the same work, and the ratio is printed: see [`operator`].

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a bench that cannot run says so and ends"
)]

mod measure;
mod operator;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use measure::{Load, measure};
use operator::Operator;

/// What to measure.
#[derive(Debug, Parser)]
struct Arguments {
    /// Path of our operator
    #[arg(long, value_name = "FILE")]
    binary: PathBuf,
    /// Path of the original operator, to compare with ours
    #[arg(long, value_name = "FILE", requires = "rival_crds")]
    rival: Option<PathBuf>,
    /// CRDs of the original operator, which its `crdgen` prints
    #[arg(long, value_name = "FILE", requires = "rival")]
    rival_crds: Option<PathBuf>,
    /// Number of policies; several numbers are several runs
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [20, 100])]
    policies: Vec<usize>,
    /// Number of databases; several numbers are several runs
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [1, 10])]
    databases: Vec<usize>,
    /// Duration of the idle phase in seconds
    #[arg(long, default_value_t = 120)]
    seconds: u64,
}

fn main() -> ExitCode {
    stanchion_bench_env::main(bench)
}

/// Runs the bench; returns whether it found no failure.
async fn bench(arguments: Arguments) -> bool {
    let rest = Duration::from_secs(arguments.seconds);
    let ours = Operator::Ours(arguments.binary);
    let rival = arguments
        .rival
        .zip(arguments.rival_crds)
        .map(|(binary, crds)| Operator::Rival { binary, crds });
    let mut kept = true;
    for &policies in &arguments.policies {
        for &databases in &arguments.databases {
            let load = Load { policies, databases };
            let figures = measure(&ours, load, rest).await;
            let others = match &rival {
                Some(rival) => Some(measure(rival, load, rest).await),
                None => None,
            };
            table::print(load, &figures, others.as_ref());
            if !figures.keeps_quiet(load) {
                kept = false;
                println!(
                    "at rest it must ask the API nothing and the server little: {:#?}",
                    figures.rest.examples
                );
            }
        }
    }
    kept
}
