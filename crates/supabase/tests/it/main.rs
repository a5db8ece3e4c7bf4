//! The database and the other dependencies of a project, on real servers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod auth;
mod bed;
mod contact_postgres;
mod contact_s3;
mod meta;
mod objects;
mod service;
