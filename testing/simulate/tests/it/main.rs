//! The simulator itself, and short campaigns of it: `make simulate` and `make fuzz` run long ones.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod campaigns;
mod changes;
mod repeats;
mod schemas;
