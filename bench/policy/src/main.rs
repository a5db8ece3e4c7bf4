//! What policies cost: until all are Ready, and then at rest with an interval of a minute.
//!
//!     cargo run -p stanchion-bench-policy -- --binary target/release/stanchion --policies 100 --databases 10
//!     cargo run -p stanchion-bench-policy -- --rival ~/.cargo/bin/pgroles-operator --rival-crds DIR --policies 100
//!
//! Each policy has two schemas and four generated roles. The operator runs as a process with a user of its own on a real
//! control plane; its requests are counted in the API server's audit log and its statements in PostgreSQL's log, so that
//! nothing depends on what an operator says of itself. Nothing is asserted: a busy machine is a slow one.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a bench that does not stand up says so and ends"
)]

mod bed;
mod usage;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use bed::{Bed, Operator};
use clap::Parser;
use tokio::time::sleep;

/// What to measure.
#[derive(Debug, Parser)]
struct Arguments {
    /// Our operator
    #[arg(long, value_name = "FILE", required_unless_present = "rival")]
    binary: Option<PathBuf>,
    /// The original's operator instead
    #[arg(long, value_name = "FILE", requires = "rival_crds")]
    rival: Option<PathBuf>,
    /// The original's definitions, which its `crdgen` writes
    #[arg(long, value_name = "DIR")]
    rival_crds: Option<PathBuf>,
    /// How many policies
    #[arg(long, default_value_t = 100)]
    policies: usize,
    /// On how many databases
    #[arg(long, default_value_t = 1)]
    databases: usize,
    /// For how long nothing happens
    #[arg(long, default_value_t = 120)]
    seconds: u64,
}

#[tokio::main]
async fn main() {
    let arguments = Arguments::parse();
    let operator = match (&arguments.rival, &arguments.binary) {
        (Some(rival), _) => Operator::Rival(
            rival.clone(),
            arguments.rival_crds.clone().expect("clap asks for it"),
        ),
        (None, Some(binary)) => Operator::Ours(binary.clone()),
        (None, None) => unreachable!("clap asks for one of them"),
    };
    let bed = Bed::new(&operator).await;
    bed.create(arguments.policies, arguments.databases).await;
    let (mark, start) = (bed.mark(), Instant::now());
    let process = bed.start(&operator);
    bed.converge(arguments.policies).await;
    let took = start.elapsed().as_secs_f64();
    let made = bed.count(&mark).await;
    row(
        "policies, databases",
        &format!("{}, {}", arguments.policies, arguments.databases),
    );
    row("all Ready after", &format!("{took:.1} s"));
    row(
        "API calls, writes",
        &format!("{}, {}", made.requests, made.writes),
    );
    row("SQL statements", &made.statements.to_string());
    // What follows from the last status is over by then.
    sleep(Duration::from_secs(15)).await;

    let mark = bed.mark();
    let before = usage::cpu(process.pid());
    sleep(Duration::from_secs(arguments.seconds)).await;
    let rest = bed.count(&mark).await;
    let minutes = Duration::from_secs(arguments.seconds).as_secs_f64() / 60.0;
    let a_minute = |count: usize| {
        format!(
            "{:.1}",
            f64::from(u32::try_from(count).unwrap_or(u32::MAX)) / minutes
        )
    };
    row("at rest for", &format!("{} s", arguments.seconds));
    row("API calls a minute", &a_minute(rest.requests));
    row("API writes a minute", &a_minute(rest.writes));
    row("SQL statements a minute", &a_minute(rest.statements));
    row(
        "CPU",
        &format!(
            "{:.2} s",
            usage::cpu(process.pid()).saturating_sub(before).as_secs_f64()
        ),
    );
    row(
        "memory",
        &format!("{:.1} MiB", usage::resident_mib(process.pid())),
    );
}

fn row(what: &str, figure: &str) {
    println!("{what:<26}{figure}");
}
