//! The page on a cluster.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod browser;
mod decide;
mod fleet;
mod guard;
mod live;
mod test_env;
