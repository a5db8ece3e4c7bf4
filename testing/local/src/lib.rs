//! Local servers for demos and tests. They end with the process that starts them.
//!
//! | module | what it gives |
//! |---|---|
//! | [`postgres`] | PostgreSQL, found on the machine or downloaded once, with a data directory and a free port |
//! | [`s3`] | an S3 server in this process |
//! | [`process`], [`scratch`] | children and directories that cannot outlive this process |
//! | [`port`] | free ports on loopback |
//! | [`kubectl`] | finds kubectl on the machine |
//! | [`npm`] | packages from npm, pinned by their checksum |
//! | [`cache`], [`account`] | where downloads are kept, and which account a server runs as if we are root |
//!
//! Both `stanchion sandbox` and the test environment use this crate. A user's command must not panic and must not
//! include the test environment (clusters, faults, crash harness), so this is a separate crate.

pub mod account;
pub mod cache;
pub mod error;
pub mod kubectl;
pub mod npm;
pub mod port;
pub mod postgres;
pub mod process;
pub mod s3;
pub mod scratch;

pub use error::Error;
