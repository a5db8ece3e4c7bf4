//! PostgreSQL for Stanchion: connections, statements, errors. This crate does not know Kubernetes.
//!
//! From the bottom up:
//!
//! | module | subject |
//! |---|---|
//! | [`quote`], `statement` | SQL text without injection, whose secrets cannot be printed |
//! | [`scram`] | password verifiers, so that no cleartext password is sent |
//! | `sqlstate`, [`error`] | errors and their classification |
//! | [`connection_config`], `tls`, [`network`], `dialer` | server, credentials, TLS, allowed addresses and sockets |
//! | [`session`] | one connection with all its limits, and its part that can only read |
//! | `read`, `batch`, `transaction` | many queries, or many statements, in one round trip |
//! | `identity`, [`server`] | the identity of a database, and our privileges there |
//! | [`handover`] | what happens to the objects of a role that is dropped |
//! | [`lock`], [`pool`] | one writer per database, few connections per server |
//!
//! Sessions set parameters and take session locks, so they need a direct connection or a pooler in session mode; a
//! pooler in transaction mode would pass our settings to other clients.

mod batch;
pub mod connection_config;
mod dialer;
pub mod error;
mod fence;
pub mod handover;
pub mod http;
mod identity;
pub mod lock;
pub mod network;
mod observe;
pub mod pool;
pub mod quote;
mod read;
pub mod scram;
pub mod server;
pub mod session;
mod sqlstate;
mod statement;
mod tls;
mod transaction;
mod unblock;

pub use batch::{Batch, Begin, Isolation};
pub use connection_config::{ConnectionConfig, ConnectionConfigError};
pub use dialer::{Dial, Dialer, Wire};
pub use error::{Error, Kind, LEFT_ALONE};
pub use fence::Fence;
pub use identity::{Identity, Place};
pub use lock::{AdvisoryKey, Locks};
pub use network::AllowedNetworks;
pub use observe::{StatementObserver, Statements};
pub use pool::{Listener, PoolSettings, Pooled, Pools, ReadPooled};
pub use read::Query;
pub use server::{Level, Powers, Server};
pub use session::{Answered, Budget, Limits, ReadSession, Security, Session, Terms, Timeouts};
pub use sqlstate::{Class, Doing};
pub use statement::Statement;
pub use tls::TlsMode;
pub use transaction::{ReadTransaction, Transaction};
pub use unblock::Blocked;

/// The driver's row and value types, so that callers need not depend on the driver itself.
pub use tokio_postgres::{Error as RowError, Row, types};
