//! The environment of the benchmarks: a real control plane, a real PostgreSQL server, the operator as a user starts it,
//! and counters that do not depend on the operator's own metrics.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    clippy::print_stdout,
    reason = "a bench that does not stand up says so and ends"
)]

mod connections;
mod env;
mod usage;

pub use env::{BenchEnv, Checkpoint, Counted, DATABASE, OURS, PASSWORD, RIVAL};
pub use usage::Usage;

/// Prints one figure.
pub fn row(what: &str, figure: &str) {
    println!("{what:<32}{figure}");
}
