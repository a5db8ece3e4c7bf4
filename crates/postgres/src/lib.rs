//! Everything that Stanchion knows about speaking to PostgreSQL, and nothing about Kubernetes.
//!
//! From the bottom up:
//!
//! | module | subject |
//! |---|---|
//! | [`quote`], [`statement`] | SQL text that cannot be injected into, and whose secrets cannot be shown |
//! | [`scram`] | password verifiers, so that no clear password travels |
//! | [`sqlstate`], [`error`] | what went wrong, and who can do something about it |
//! | [`target`], [`tls`], [`network`] | where to connect, as whom, and how far to trust the other side |
//! | [`session`] | one connection with all its limits |
//! | [`read`], [`batch`], [`transaction`] | many queries, or many statements, in one round trip |
//! | [`identity`], [`server`] | which database this really is, and what we may do there |
//! | [`handover`] | what becomes of what a role owned, when the role goes |
//! | [`lock`], [`pool`] | one writer a database, few connections a server |
//!
//! Sessions set parameters and take session locks, so they need a direct connection or a pooler in
//! session mode; a pooler in transaction mode would hand our settings to somebody else.

pub mod batch;
pub mod error;
pub mod fence;
pub mod handover;
pub mod identity;
pub mod lock;
pub mod network;
pub mod observe;
pub mod pool;
pub mod quote;
pub mod read;
pub mod scram;
pub mod server;
pub mod session;
pub mod sqlstate;
pub mod statement;
pub mod target;
pub mod tls;
pub mod transaction;

pub use batch::{Batch, Begin, Isolation};
pub use error::{Error, Kind};
pub use fence::Fence;
pub use identity::{Identity, Place};
pub use lock::{AdvisoryKey, Locks};
pub use network::AllowedNetworks;
pub use observe::{StatementObserver, Statements};
pub use pool::{PoolSettings, Pooled, Pools};
pub use read::Query;
pub use server::{Level, Powers, Server};
pub use session::{Answered, Budget, Limits, Security, Session, Terms, Timeouts};
pub use sqlstate::{Class, Doing};
pub use statement::Statement;
pub use target::{Target, TargetError};
pub use tls::TlsMode;
pub use transaction::Transaction;

/// The driver's row and value types, so that callers need not depend on the driver itself.
pub use tokio_postgres::{Error as RowError, Row, types};
