//! Integration tests of the sandbox: with the answers of a real API server, with kube-rs and with kubectl.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr
)]

mod clients;
mod conformance;
mod crds;
mod faults;
mod independence;
mod kubectl;
mod load;
mod processes;
mod raw_requests;
mod real_cluster;
mod report;
mod requests;
mod services;
mod unauthorized_access;
mod webhook_server;
mod webhooks;
