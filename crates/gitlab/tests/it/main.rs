//! `GitlabInstance` on a real API server, one module for each subject.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests say what went wrong by failing"
)]

mod calls;
mod crash;
mod definitions;
mod deletion;
mod examples;
mod failed_passes;
mod fake_operators;
mod managed;
mod missing_dependencies;
mod operator_upgrade;
mod prepared;
mod provided_backends;
mod rbac;
mod real_flux;
mod refused_specs;
mod schemas;
mod takeover;
mod tenant_isolation;
mod test_env;
mod version_upgrades;
mod webhook;
