//! Servers on this machine, for trying and for testing: started by whoever needs them, and gone with them.
//!
//! | module | what it gives |
//! |---|---|
//! | [`postgres`] | PostgreSQL, found on the machine or downloaded once, with a data directory and a free port |
//! | [`s3`] | an S3 server in this process |
//! | [`process`], [`scratch`] | children and directories that cannot outlive this process |
//! | [`port`] | free ports on loopback |
//! | [`kubectl`] | a kubectl that the machine has |
//! | [`cache`], [`account`] | where downloads are kept, and as whom a server runs when we are root |
//!
//! Both `stanchion sandbox` and the test bed stand on it. A user's command must not panic and must not carry the
//! test bed (clusters, faults, crash harness) with it, hence a crate between the two.

pub mod account;
pub mod cache;
pub mod error;
pub mod kubectl;
pub mod port;
pub mod postgres;
pub mod process;
pub mod s3;
pub mod scratch;

pub use error::Error;
