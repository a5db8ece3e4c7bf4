//! `SupabaseProject`: a complete Supabase on a PostgreSQL and an S3 that somebody else runs.
//!
//! | module | subject |
//! |---|---|
//! | [`database`] | what the services need in the database, created once and recorded there |
//! | [`dependencies`] | whether PostgreSQL and S3 answer, and if not, why |
//! | [`keys`] | the project's keys and passwords, in one Secret |
//! | `components` | the components, each from one row of a table |
//! | `network` | access to a project, and scaling |
//! | `webhook` | validation when somebody applies a project |
//! | `project` | the controller: validate, observe, plan, apply, cleanup, report |

// Types are public for the traits of the kernel and for tests; a comment is only where it says more than the name.
#![allow(missing_docs)]

mod components;
pub mod database;
pub mod dependencies;
pub mod keys;
mod network;
mod project;
mod webhook;

pub use project::children::HTTPRoute;
pub use project::{ProjectController, Setup};
pub use webhook::webhooks;

/// Sets a field of an object in the form of JSON.
pub(crate) fn put(object: &mut serde_json::Value, field: &str, value: impl Into<serde_json::Value>) {
    object[field] = value.into();
}
