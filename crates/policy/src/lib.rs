//! `PostgresPolicy`: the role engine as a controller.
//!
//! There is no role logic here. A spec is converted to the engine's manifest, the engine compares it with the database,
//! and this crate decides when changes are applied, whether they need approval, and what is reported.
//!
//! ```text
//! policy/                                    the steps of a reconcile
//! connection, profiles, passwords            what a policy refers to
//! overlap, claims                            which policies conflict
//! plans/                                     the objects that people read, approve and reject
//! converged_cache                            makes a reconcile of an unchanged policy cost one statement
//! problems, metrics                          failures and metrics under the original's names
//! ```

// Types are public for the traits of the kernel and for tests; a comment is only where it says more than the name.
#![allow(missing_docs)]

mod claims;
mod connection;
mod converged_cache;
pub mod metrics;
mod overlap;
mod passwords;
pub mod plans;
pub mod policy;
mod problems;
pub mod profiles;
mod setup;

pub use policy::PolicyController;
pub use setup::Setup;
