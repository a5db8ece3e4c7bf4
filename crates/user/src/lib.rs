//! `PostgresUser` and `PostgresInstance`: a role, its password, its privileges, and a clean goodbye.
//!
//! ```text
//! user/       the controller of PostgresUser: validate, observe, plan, apply, report
//! instance/   the controller of PostgresInstance, in the same rooms
//! server      which server an object means, and how it is reached
//! rules       what a server opens to a namespace
//! contact     what a condition says about the connection to a server
//! credentials what the application's Secret contains
//! generate    passwords
//! webhook     what is told when somebody applies an object
//! ```

pub mod contact;
pub mod credentials;
pub mod generate;
pub mod instance;
pub mod rules;
pub mod server;
pub mod setup;
pub mod user;
pub mod webhook;

pub use instance::InstanceController;
pub use rules::Openings;
pub use setup::{DefaultInstance, Setup};
pub use user::{UserController, check, check_username};
pub use webhook::webhooks;
