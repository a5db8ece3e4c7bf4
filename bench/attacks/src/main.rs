//! What one hostile tenant, server or client costs everybody else.
//!
//!     cargo run -p stanchion-bench-attacks -- --binary target/release/stanchion [--only endless-rows]
//!
//! For each attack of [`attacks::ALL`] the bench starts the operator anew, measures how long another tenant's new
//! `PostgresUser` takes until it is Ready, begins the attack from a second namespace, and measures the same again while
//! the attack goes on. It prints both times, their ratio, the most memory that the operator used, and whether the
//! process survived. A process that ended, one that used more than [`MEMORY_MIB`], and a user that did not become ready
//! fail the bench; times are figures and never a failure.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a bench that cannot run says so and ends"
)]

mod attacks;
mod flood;
mod objects;
mod servers;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use stanchion_bench_env::{BenchEnv, Usage};
use stanchion_testkit::port;
use tokio::time::sleep;

use crate::attacks::Attack;
use crate::objects::Tenant;

/// The memory limit of the shipped Deployment.
const MEMORY_MIB: f64 = 256.0;
/// New users of the other tenant, before the attack and during it.
const USERS: usize = 3;
/// How long an attack goes on before the other tenant's users come.
const HEAD_START: Duration = Duration::from_secs(5);

#[derive(Debug, Parser)]
struct Arguments {
    /// The operator
    #[arg(long, value_name = "FILE")]
    binary: PathBuf,
    /// Run this attack alone
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
}

fn main() -> ExitCode {
    stanchion_bench_env::main(bench)
}

/// Runs the bench; returns whether it found no failure.
async fn bench(arguments: Arguments) -> bool {
    let chosen = |attack: &&Attack| arguments.only.as_ref().is_none_or(|name| name == attack.name);
    let mut held = true;
    println!("| attack | a user before | during | ratio | memory at most | |");
    println!("|---|---|---|---|---|---|");
    for attack in attacks::ALL.iter().filter(chosen) {
        held &= run(&arguments.binary, attack).await;
    }
    held
}

/// Runs one attack and prints its row. Returns whether the operator held.
async fn run(binary: &Path, attack: &Attack) -> bool {
    let env = BenchEnv::new("attacks").await;
    let bank = Tenant::new(&env, "bank").await;
    let evil = Tenant::new(&env, "evil").await;
    let webhooks = format!("127.0.0.1:{}", port::free());
    let mut operator = env.operator_with(
        binary,
        &[
            "--controllers",
            "user,policy",
            "--webhook-addr",
            &webhooks,
            "--webhook-url",
            &format!("https://{webhooks}"),
            "--operator-namespace",
            env.namespace(),
        ],
    );
    // The first user waits until the operator has started, and for its first connection.
    bank.users_ready(2 * USERS..2 * USERS + 1).await;
    let before = bank.users_ready(0..USERS).await;
    let attackers = (attack.begin)(&evil, &webhooks).await;
    sleep(HEAD_START).await;
    let during = bank.users_ready(USERS..2 * USERS).await;
    let refused = evil.refused();
    let alive = operator.ended().is_none();
    let peak = alive.then(|| Usage::of(operator.pid()).peak_mib());
    attackers.stop();

    let seconds = |time: Option<Duration>| {
        time.map_or("never".to_owned(), |time| format!("{:.2} s", time.as_secs_f64()))
    };
    let ratio = before.zip(during).map_or("-".to_owned(), |(before, during)| {
        format!("{:.1}", during.as_secs_f64() / before.as_secs_f64())
    });
    let memory = peak.map_or("ended".to_owned(), |mib| format!("{mib:.0} MiB"));
    let held = during.is_some() && peak.is_some_and(|mib| mib < MEMORY_MIB);
    println!(
        "| {} | {} | {} | {ratio} | {memory} | {} |",
        attack.title,
        seconds(before),
        seconds(during),
        match (held, refused) {
            (false, _) => "BROKE".to_owned(),
            (true, 0) => "held".to_owned(),
            (true, objects) => format!("held; the API server refused {objects} objects"),
        }
    );
    held
}
