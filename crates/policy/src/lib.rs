//! `PostgresPolicy`: the role engine as a controller.
//!
//! There is no role logic here. A spec is converted to the engine's manifest, the engine compares it with the database,
//! and this crate decides when changes are applied, whether they need approval, and what is reported.
//!
//! ```text
//! validate, observe, plan, apply, report     the steps of a reconcile
//! connection, profiles, passwords            what a policy refers to
//! overlap, claims                            which policies conflict
//! plans/                                     the objects that people read, approve and reject
//! steady                                     makes a reconcile of an unchanged policy cost one statement
//! problems, metrics                          failures and metrics under the original's names
//! ```

pub mod apply;
pub mod claims;
pub mod connection;
pub mod controller;
pub mod metrics;
pub mod observe;
pub mod overlap;
pub mod passwords;
pub mod plan;
pub mod plans;
pub mod problems;
pub mod profiles;
pub mod report;
pub mod setup;
pub mod steady;
pub mod target;
pub mod validate;

pub use controller::PolicyController;
pub use setup::Setup;
