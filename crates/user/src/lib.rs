//! `PostgresUser` and `PostgresInstance`: a role, its password, its privileges, and its cleanup.
//!
//! ```text
//! user/       the controller of PostgresUser: validate, observe, plan, apply, cleanup, report
//! instance/   the controller of PostgresInstance, in the same steps
//! server      which server an object uses, and its connection
//! rules       what a server opens to a namespace
//! credentials the contents of the application's Secret
//! generate    passwords
//! webhook     validation when somebody applies an object
//! ```

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
