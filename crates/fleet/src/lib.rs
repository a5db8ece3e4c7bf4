//! The objects that the operator manages, read with a person's kubeconfig and permissions.
//!
//! | module | subject | |
//! |---|---|---|
//! | [`cluster`] | the cluster of a kubeconfig, and why something cannot be read | reads |
//! | [`kinds`] | the kinds with a status, and their names on a command line | pure |
//! | [`kubeconfig`] | the cluster that the environment names, and its proxy | reads |
//! | [`plans`] | which failed plans are history | pure |
//! | [`read`] | all objects, or one with its children and events | reads |
//! | [`assess`] | the state of an object, what it waits for, what to do | pure |
//! | [`detail`] | everything about one object | pure |
//! | [`redact`] | objects and texts without secrets | pure |
//! | [`sql`] | SQL as tokens | pure |
//!
//! `stanchion status` and `stanchion ui` show the same facts because both use this crate.

// A comment is only where it says more than the name.
#![allow(missing_docs)]

pub mod assess;
pub mod cluster;
pub mod detail;
pub mod kinds;
pub mod kubeconfig;
pub mod plans;
pub mod read;
pub mod redact;
pub mod sql;
