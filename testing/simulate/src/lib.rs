//! Deterministic simulation: the kernel, an API server and a controller in one process, on paused time.
//!
//! A run is a pure function of its [`Schedule`]: operations of users, and disturbances of everything between the
//! operator and the world. Each schedule follows from a seed. The same operations run a second time without
//! disturbances, and both ends must be equal.
//!
//! | module | what it decides |
//! |---|---|
//! | [`schedule`] | what happens when: made from a seed, printed, shortened |
//! | [`disturbance`] | what can go wrong |
//! | [`network`] | does it to the requests and watches of a replica, and keeps the record |
//! | [`server`] | a real PostgreSQL for the scenarios that need one |
//! | [`replica`] | an operator as it is in production: election, fence, client, controllers |
//! | [`run`] | carries a schedule out and asks the properties |
//! | [`properties`] | what must hold, whatever happened |
//! | [`shrink`] | the shortest schedule that still fails |
//! | [`campaign`] | many seeds on all cores |
//! | [`generate`], [`fuzz`] | objects from their schemas, and what follows from changing one field after the other |
//! | [`scenario`] | what a kind has to bring along; [`scenarios`] are those that there are |
//!
//! What makes it repeatable: one thread a run; tokio's paused clock, which jumps to the next timer when nobody has
//! anything to do; no sockets of the runtime's: an exchange with PostgreSQL blocks the thread, so that no time passes and
//! nothing overtakes it; time of day and chance from [`stanchion_kernel::ambient`]; delays that follow from the
//! request itself and not from how many came before it, so that leaving out one step of a schedule leaves the
//! rest as it was.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "test code: a simulation that cannot be set up is reported by failing"
)]

pub mod campaign;
mod cluster;
pub mod disturbance;
pub mod fuzz;
pub mod generate;
pub mod network;
mod panics;
pub mod properties;
pub mod replica;
pub mod run;
pub mod scenario;
pub mod scenarios;
pub mod schedule;
pub mod server;
pub mod shrink;
mod user;
