//! `PostgresPolicy` on a real API server and a real PostgreSQL, one module for each subject.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests say what went wrong by failing, and figures by printing them"
)]

mod approvals;
mod checks;
mod conflicts;
mod connections;
mod converged;
mod crash;
mod deletion;
mod examples;
mod failures;
mod lifecycle;
mod load;
mod locks;
mod metrics;
mod passwords;
mod plans;
mod replicas;
mod samples;
mod test_env;
mod tls;
mod upgrade;
