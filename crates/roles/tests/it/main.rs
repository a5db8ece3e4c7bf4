//! The role engine against real servers of every version.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod blackbox;
mod bundles;
mod convergence;
mod offline;
mod options;
mod properties;
mod reference;
mod review;
mod safety;
mod snapshots;
mod support;
