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
mod existing;
mod extensions;
mod hostile;
mod interrupted;
mod meta;
mod neighbours;
mod objects;
mod plain_admin;
mod quiet;
mod rights;
mod service;
mod state;
