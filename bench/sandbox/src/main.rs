//! Compares the sandbox with a real control plane in one run: time to the first answer, throughput, delay of watches,
//! memory per object, and whether a hundred watchers see every one of many writes.
//!
//!     STANCHION_TEST_CLUSTER=real cargo run --release -p stanchion-bench-sandbox -- --binary target/release/stanchion
//!
//! The same client uses both over TLS. Figures are never a failure; a missed or reordered event is: the program then
//! panics.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a bench that cannot run says so and ends"
)]

mod memory;
mod server;
mod watchers;
mod work;

use std::path::PathBuf;

use clap::Parser;
use server::Server;

/// What to measure.
#[derive(Debug, Parser)]
struct Arguments {
    /// Path of the program whose sandbox is measured
    #[arg(long, value_name = "FILE")]
    binary: PathBuf,
    /// Number of objects
    #[arg(long, default_value_t = 10_000)]
    objects: u32,
    /// Number of watchers
    #[arg(long, default_value_t = 100)]
    watchers: u32,
    /// Number of writes
    #[arg(long, default_value_t = 10_000)]
    writes: u32,
    /// Maximum number of writes per second
    #[arg(long, default_value_t = 1_000)]
    rate: u32,
}

/// The figures of one server; the units are those in [`ROWS`].
struct Figures([f64; ROWS.len()]);

/// The name of a row, its unit, and whether more is better.
const ROWS: [(&str, &str, bool); 7] = [
    ("start to first answer", "ms", false),
    ("creates", "a second", true),
    ("server-side applies", "a second", true),
    ("write to watch, median", "ms", false),
    ("write to watch, 99 of 100", "ms", false),
    ("memory of an object", "KiB", false),
    ("writes among watchers", "a second", true),
];

async fn measure(start: impl Future<Output = Server>, arguments: &Arguments) -> Figures {
    let begin = std::time::Instant::now();
    let server = start.await;
    let started = begin.elapsed().as_secs_f64() * 1e3;
    let client = server.client().await;
    let before = memory::of_descendants();
    let creates = work::creates(&client, arguments.objects).await;
    let grown = memory::of_descendants().saturating_sub(before);
    let applies = work::applies(&client, arguments.objects.min(2_000)).await;
    let (median, slowest) = work::latency(&client).await;
    let followed = watchers::follow(&client, arguments).await;
    #[allow(clippy::cast_precision_loss, reason = "kibibytes, shown with two digits")]
    let kib = grown as f64 / f64::from(arguments.objects);
    Figures([started, creates, applies, median, slowest, kib, followed])
}

#[tokio::main]
async fn main() {
    let arguments = Arguments::parse();
    let sandbox = measure(Server::sandbox(&arguments.binary), &arguments).await;
    let real = measure(Server::real(), &arguments).await;
    println!(
        "{} objects, {} watchers, {} writes at no more than {} a second\n",
        arguments.objects, arguments.watchers, arguments.writes, arguments.rate
    );
    println!("{:<28}{:>12}{:>12}{:>10}", "", "sandbox", "real", "better by");
    for ((name, unit, more_is_better), (ours, theirs)) in ROWS.iter().zip(sandbox.0.iter().zip(real.0)) {
        let factor = if *more_is_better {
            ours / theirs
        } else {
            theirs / ours
        };
        println!("{name:<28}{ours:>12.1}{theirs:>12.1}{factor:>9.1}x  {unit}");
    }
}
