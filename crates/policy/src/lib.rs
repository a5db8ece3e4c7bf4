//! `PostgresPolicy`: the role engine as a controller.
//!
//! There is no role logic here. A spec is converted to the engine's manifest, the engine says what separates it from
//! the database, and this crate decides when that is done, who has to agree, and what is told about it.
//!
//! ```text
//! validate, observe, plan, apply, report     the rooms
//! connection, profiles, passwords            what a policy refers to
//! overlap, claims                            which policies are in each other's way
//! plans/                                     the objects that people read, approve and reject
//! steady                                     what makes a pass over an unchanged policy cost one statement
//! problems, metrics                          failures by the original's names, and numbers by its names
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
