//! `GitlabInstance` on a real API server, one module for each subject.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests say what went wrong by failing"
)]

mod bed;
mod crash;
mod definitions;
mod examples;
mod goodbye;
mod life;
mod managed;
mod missing;
mod players;
mod rights;
mod schemas;
mod takeover;
mod upgrade;
mod upgrades;
mod walls;
