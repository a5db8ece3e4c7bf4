//! The kernel: everything that controllers share.
//!
//! A controller's crate implements [`Reconciler`] and [`Cleanup`], five steps each of which three are pure; the
//! [`driver`] runs them. The kernel decides about suspension, requeues, retries, finalizers, status writes, events,
//! metrics and deadlines, so that no controller contains any of it.

pub mod admission;
pub mod ambient;
pub mod apply;
pub mod children;
pub mod client;
pub mod condition;
pub mod context;
pub mod driver;
pub mod events;
pub mod external;
pub mod finalizer;
pub mod lease;
pub mod lenient;
pub mod marks;
pub mod problem;
pub mod rbac;
pub mod reconciler;
pub mod redact;
mod reviews;
pub mod scope;
pub mod status;
pub mod telemetry;
pub mod text;
mod tls;
pub mod watch;

pub use context::{Reader, Writer};
pub use problem::{Class, Problem};
pub use reconciler::{
    Cleanup, CleanupOutcome, Done, Inactive, Inputs, NoCleanup, Outcome, Reconciler, Report,
};
pub use scope::Scope;
pub use tls::tls_mode;
