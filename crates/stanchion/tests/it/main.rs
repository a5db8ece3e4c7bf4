//! The binary as a user starts it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod chart;
mod cli;
#[cfg(feature = "otlp")]
mod collector;
mod crds;
mod doctor;
mod documents;
mod environment;
mod generated;
mod image;
mod installation;
mod operator;
mod page;
mod password_leaks;
mod project;
mod rbac;
mod release;
mod replicas;
#[cfg(feature = "sandbox")]
mod sandbox;
mod startup;
mod user_commands;
mod users;

use std::time::Duration;

/// Enough for a busy machine and for a lease to expire.
const DEADLINE: Duration = Duration::from_mins(2);
