//! `PostgresPolicy` on a real API server and a real PostgreSQL, one module a subject.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod bed;
mod conflicts;
mod connections;
mod crash;
mod failures;
mod goodbye;
mod life;
mod passwords;
mod plans;
mod replicas;
mod rest;
