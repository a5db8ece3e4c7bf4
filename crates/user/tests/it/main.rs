//! `PostgresUser` on a real API server and a real PostgreSQL, one module for each subject.
//!
//! Ids such as `C34` and `A16` in the comments are listed in docs/postgresuser/checks.md.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod admission;
mod adoption;
mod blocked_cleanup;
mod conflicts;
mod convergence;
mod crash;
mod credentials;
mod databases;
mod deletion;
mod deletion_policies;
mod drift;
mod examples;
mod finalizer;
mod hostile;
mod instances;
mod login;
mod passwords;
mod privileges;
mod rbac;
mod reconcile_triggers;
mod retries;
mod roles;
mod sessions;
mod status;
mod suspend_and_plan;
mod tenant_isolation;
mod test_env;
mod webhook;
