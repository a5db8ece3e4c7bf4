//! Measures the cost of creating many users of one database, and whether they lose each other's grants.
//!
//!     cargo run -p stanchion-bench-users -- --binary target/release/stanchion [--objects 1000] [--seconds 60]
//!
//! A run has three parts: create N `PostgresUser`s, an idle phase, then a burst of new objects. Requests are counted in
//! the API server's audit log, statements and connections in PostgreSQL's, grants in its catalog. A lost grant, or a
//! write or a statement of an idle operator is a failure: the program then exits with 1. Times are never a failure.
//!
//! With `--rival DIR` another operator does the same work afterwards, on the same machine: see [`rival`].

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a bench that cannot run says so and ends"
)]

mod rival;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use stanchion_bench_env::{BenchEnv, Counted, Usage, row};
use tokio::time::sleep;

/// Number of objects in the burst.
const BURST: usize = 40;

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
    /// Checkout of movetokube's operator with its program built as `manager`, to compare with ours
    #[arg(long, value_name = "DIR")]
    rival: Option<PathBuf>,
}

fn main() -> ExitCode {
    stanchion_bench_env::main(bench)
}

/// Runs the bench; returns whether it found no failure.
async fn bench(arguments: Arguments) -> bool {
    if let Some(rival) = &arguments.rival {
        rival::compare(&arguments.binary, rival, arguments.objects).await;
        return true;
    }
    measure(&arguments.binary, arguments.objects, arguments.seconds).await
}

/// Prints our figures; returns whether there was no failure.
async fn measure(binary: &Path, objects: usize, seconds: u64) -> bool {
    let env = BenchEnv::new("users").await;
    env.create_users(0..objects).await;
    let (checkpoint, start) = (env.checkpoint(), Instant::now());
    let operator = env.operator(binary);
    env.users_ready(objects).await;
    let took = start.elapsed();
    let usage = Usage::of(operator.pid());
    env.quiet().await;
    row("users of one database", &objects.to_string());
    made(objects, took, &env.count(&checkpoint).await);
    row(
        "CPU of the operator",
        &format!("{:.1} s", usage.cpu.as_secs_f64()),
    );
    let granted = granted(&env).await;
    row("grants in the catalog", &format!("{granted} of {objects}"));

    let checkpoint = env.checkpoint();
    sleep(Duration::from_secs(seconds)).await;
    let idle = env.count(&checkpoint).await;
    row("nothing happened for", &format!("{seconds} s"));
    row(
        "API writes, SQL statements",
        &format!("{}, {}", idle.writes, idle.statements),
    );

    let start = Instant::now();
    env.create_users(objects..objects + BURST).await;
    env.users_ready(objects + BURST).await;
    let took = start.elapsed().as_secs_f64();
    let all = self::granted(&env).await;
    row(
        &format!("{BURST} more at once"),
        &format!("{took:.1} s, {} grants", all - granted),
    );
    let usage = Usage::of(operator.pid());
    row("memory of the operator", &usage.memory());
    if idle.writes + idle.statements > 0 {
        println!(
            "an idle operator must neither write nor ask: {:#?}",
            idle.examples
        );
    }
    idle.writes + idle.statements == 0 && all == objects + BURST
}

/// Prints the cost of creating all users.
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

/// The number of our users in the database's ACL.
async fn granted(env: &BenchEnv) -> usize {
    let sql = "SELECT count(*) FROM pg_database d, aclexplode(d.datacl) a JOIN pg_roles r ON r.oid = a.grantee \
               WHERE d.datname = 'app' AND a.privilege_type = 'CONNECT' AND r.rolname LIKE 'user\\_%'";
    let count = env.server().scalar("postgres", sql).await.expect("a count");
    count.parse().expect("a count")
}
