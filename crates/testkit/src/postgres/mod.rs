//! Throw-away PostgreSQL servers of a chosen version.
//!
//! [`Postgres::shared`] is one server a version for all tests of a binary, with a fresh database for
//! each ([`Postgres::database`]). [`Postgres::start`] and [`Postgres::builder`] give a server of one's
//! own, to stop, restart, configure or put TLS on.
//!
//! Every server logs all statements and connections; [`Postgres::log`] is how a test asserts on SQL and
//! on the absence of secrets.

mod builder;
mod database;
mod identity;
mod log;
mod server;
mod session;
mod sessions;
mod template;
mod versions;

pub use builder::{Builder, Tls};
pub use database::Database;
pub use log::{Log, LogEntry};
pub use server::Postgres;
pub use session::Rows;
pub use stanchion_local::postgres::Version;
pub use versions::{any, extremes, versions};

/// The superuser of every server.
pub const ADMIN: &str = "postgres";

/// Its password.
pub const ADMIN_PASSWORD: &str = "testkit-admin";
