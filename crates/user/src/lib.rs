//! `PostgresUser` and `PostgresInstance`: a role, its password, its privileges, and a clean goodbye.
//!
//! ```text
//! user/       the controller of PostgresUser: validate, observe, plan, apply, report
//! instance/   the controller of PostgresInstance, in the same rooms
//! server      which server an object means, and what is allowed there
//! credentials what the application's Secret contains
//! generate    passwords
//! ```

pub mod credentials;
pub mod generate;
pub mod instance;
pub mod server;
pub mod setup;
pub mod user;

pub use instance::InstanceController;
pub use setup::{DefaultInstance, Setup};
pub use user::{UserController, check, check_username};
