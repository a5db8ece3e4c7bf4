//! `PostgresUser` and `PostgresInstance`: a role, its password, its privileges, and its cleanup.
//!
//! ```text
//! user/       the controller of PostgresUser: validate, observe, plan, apply, cleanup, report
//! instance/   the controller of PostgresInstance, in the same steps
//! server      the servers, which of them an object uses, and what the controllers share
//! rules       what a server opens to a namespace
//! credentials the contents of the application's Secret
//! generate    passwords
//! webhook     validation when somebody applies an object
//! ```

// Types are public for the traits of the kernel and for tests; a comment is only where it says more than the name.
#![allow(missing_docs)]

mod credentials;
mod generate;
mod instance;
mod rules;
mod server;
mod user;
mod webhook;

pub use instance::InstanceController;
pub use server::{DefaultInstance, Openings, Setup};
pub use user::{UserController, check};
pub use webhook::webhooks;
