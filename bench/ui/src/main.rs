//! Measures `stanchion ui` in a real browser, or takes the pictures of the documentation.
//!
//!     cargo run --bin stanchion-bench-ui
//!     cargo run --bin stanchion-bench-ui -- --screenshots docs/images --binary target/debug/stanchion
//!
//! The browser has a warm cache: the style sheet and the script are loaded, and the page has listed the objects. A slow
//! run is never a failure.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a bench that cannot run says so and ends"
)]

mod measure;
mod shoot;

use std::path::PathBuf;

use clap::Parser;

/// What to do.
#[derive(Debug, Parser)]
struct Arguments {
    /// Number of objects
    #[arg(long, default_value_t = 1_000)]
    objects: usize,
    /// Number of repetitions; the table shows the median and the worst
    #[arg(long, default_value_t = 20)]
    rounds: usize,
    /// Write pictures into this folder instead
    #[arg(long, value_name = "DIR", requires = "binary")]
    screenshots: Option<PathBuf>,
    /// The program whose sandbox is shown in the pictures
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
}

#[tokio::main]
async fn main() {
    let arguments = Arguments::parse();
    match (&arguments.screenshots, &arguments.binary) {
        (Some(folder), Some(binary)) => Box::pin(shoot::run(binary, folder)).await,
        _ => Box::pin(measure::run(arguments.objects, arguments.rounds)).await,
    }
}
