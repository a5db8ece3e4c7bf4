//! What it costs to make many users of one database, and whether they lose each other's grants.
//!
//!     cargo run -p stanchion-bench-users -- --binary target/release/stanchion [--objects 1000] [--seconds 60]
//!
//! A run has three parts: N `PostgresUser`s from nothing, then a while in which nothing may happen, then a burst of
//! objects that all come at once. Requests are counted in the API server's audit log, statements and connections in
//! PostgreSQL's, grants in its catalog. A lost grant, a write or a statement of an idle operator is a broken promise:
//! the program then ends with 1. How long anything took is a figure and never a failure.
//!
//! With `--rival DIR` another operator does the same work afterwards, on the same machine: see [`rival`].

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a bench that does not stand up says so and ends"
)]

mod rival;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use stanchion_bench_bed::{Bed, Counted, Usage, row};
use tokio::time::sleep;

/// Objects that come at once.
const BURST: usize = 40;

/// What to measure.
#[derive(Debug, Parser)]
struct Arguments {
    /// The operator
    #[arg(long, value_name = "FILE")]
    binary: PathBuf,
    /// How many objects
    #[arg(long, default_value_t = 1000)]
    objects: usize,
    /// For how long nothing happens
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// A checkout of movetokube's operator with its program built as `manager`, to measure beside ours
    #[arg(long, value_name = "DIR")]
    rival: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Some(rival) = &arguments.rival {
        rival::compare(&arguments.binary, rival, arguments.objects).await;
        return ExitCode::SUCCESS;
    }
    let kept = measure(&arguments.binary, arguments.objects, arguments.seconds).await;
    if kept {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Our figures; whether every promise was kept.
async fn measure(binary: &Path, objects: usize, seconds: u64) -> bool {
    let bed = Bed::new("users").await;
    bed.create_users(0..objects).await;
    let (mark, start) = (bed.mark(), Instant::now());
    let operator = bed.operator(binary);
    bed.users_ready(objects).await;
    let took = start.elapsed();
    let usage = Usage::of(operator.pid());
    bed.quiet().await;
    row("users of one database", &objects.to_string());
    made(objects, took, &bed.count(&mark).await);
    row(
        "CPU of the operator",
        &format!("{:.1} s", usage.cpu.as_secs_f64()),
    );
    let granted = granted(&bed).await;
    row("grants in the catalog", &format!("{granted} of {objects}"));

    let mark = bed.mark();
    sleep(Duration::from_secs(seconds)).await;
    let idle = bed.count(&mark).await;
    row("nothing happened for", &format!("{seconds} s"));
    row(
        "API writes, SQL statements",
        &format!("{}, {}", idle.writes, idle.statements),
    );

    let start = Instant::now();
    bed.create_users(objects..objects + BURST).await;
    bed.users_ready(objects + BURST).await;
    let took = start.elapsed().as_secs_f64();
    let all = self::granted(&bed).await;
    row(
        &format!("{BURST} more at once"),
        &format!("{took:.1} s, {} grants", all - granted),
    );
    let usage = Usage::of(operator.pid());
    row(
        "memory of the operator",
        &format!(
            "{:.1} MiB ({:.1} MiB at most)",
            usage.resident_mib(),
            usage.peak_mib()
        ),
    );
    if idle.writes + idle.statements > 0 {
        println!(
            "an idle operator must neither write nor ask: {:#?}",
            idle.examples
        );
    }
    idle.writes + idle.statements == 0 && all == objects + BURST
}

/// What it took to make them all.
pub(crate) fn made(objects: usize, took: Duration, counted: &Counted) {
    let count = f64::from(u32::try_from(objects).expect("a count"));
    let each = |total: usize| f64::from(u32::try_from(total).expect("a count")) / count;
    let took = took.as_secs_f64();
    row(
        "all ready in",
        &format!("{took:.1} s ({:.0} a second)", count / took),
    );
    row("connections at most", &counted.connections.to_string());
    row(
        "SQL statements a user",
        &format!("{:.1}", each(counted.statements)),
    );
    row(
        "API writes, reads a user",
        &format!("{:.1}, {:.1}", each(counted.writes), each(counted.reads)),
    );
}

/// How many of our users the database's ACL knows.
async fn granted(bed: &Bed) -> usize {
    let sql = "SELECT count(*) FROM pg_database d, aclexplode(d.datacl) a JOIN pg_roles r ON r.oid = a.grantee \
               WHERE d.datname = 'app' AND a.privilege_type = 'CONNECT' AND r.rolname LIKE 'user\\_%'";
    let count = bed.server().scalar("postgres", sql).await.expect("a count");
    count.parse().expect("a count")
}
