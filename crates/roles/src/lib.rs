//! The role engine: access control as code, without Kubernetes in it.
//!
//! ```text
//! manifest ─► expand ─► inspect ─► diff ─► plan ─► render ─► apply
//!   text      desired    facts            changes   SQL      one transaction
//! ```
//!
//! | module | subject | |
//! |---|---|---|
//! | [`manifest`] | what a user writes, and what is wrong with it, with line and column | pure |
//! | [`expand`] | what must hold | pure |
//! | [`inspect`], [`facts`] | what is there, from one snapshot | reads |
//! | [`diff`] | what separates the two | pure |
//! | [`plan`] | the changes in order, their number and their identity | pure |
//! | [`render`] | the changes as SQL, to read and to run | pure |
//! | [`apply`] | looking, deciding and doing under one lock and in one transaction | writes |
//!
//! Beside the line: [`generate`] writes the manifest of a live database, [`graph`] draws it, [`review`] is a plan to show
//! around, [`auth`] gets passwords that do not last, and [`cli`] is the command.
//!
//! Convergence is the law: after an apply the diff is empty, for every manifest that is valid.

pub mod apply;
pub mod auth;
pub mod cli;
pub mod diff;
pub mod expand;
pub mod facts;
pub mod generate;
pub mod graph;
pub mod guc;
pub mod inspect;
pub mod manifest;
pub mod model;
pub mod plan;
pub mod render;
pub mod review;
pub mod yaml;
