//! Temporary PostgreSQL servers of a chosen version.
//!
//! [`Postgres::shared`] is one server per version for all tests of a binary, with a new database for each test
//! ([`Postgres::database`]). [`Postgres::start`] and [`Postgres::builder`] start a separate server, to stop, restart or
//! configure, or to use TLS.
//!
//! Every server logs all statements and connections. Tests use [`Postgres::log`] to check the SQL and the absence of
//! secrets.

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
