//! The role engine: declarative roles and privileges of a PostgreSQL database, independent of Kubernetes.
//!
//! ```text
//! manifest ─► expand ─► inspect ─► diff ─► plan ─► render ─► apply
//!   text      desired    facts            changes   SQL      one transaction
//! ```
//!
//! | module | subject | |
//! |---|---|---|
//! | [`manifest`] | the manifest format, and errors with line and column | pure |
//! | [`expand`] | the desired state | pure |
//! | [`inspect`], [`facts`] | the state of the database, from one snapshot | reads |
//! | [`diff`] | the differences | pure |
//! | [`plan`] | the changes in order, their summary and their identity | pure |
//! | [`render`] | the changes as SQL, to read and to run | pure |
//! | [`apply`] | inspects, plans and applies under one lock and in one transaction | writes |
//!
//! In addition, [`generate`] writes the manifest of a live database, [`graph`] draws it, and [`review`] writes a plan for
//! reviewers. The command `stanchion roles` is in `crates/roles-cli`.
//!
//! The engine converges: after an apply the diff is empty, for every valid manifest.

pub mod apply;
pub mod diff;
pub mod expand;
pub mod facts;
pub mod generate;
pub mod graph;
mod guc;
pub mod inspect;
pub mod manifest;
pub mod model;
pub mod plan;
pub mod render;
pub mod review;
pub mod yaml;
