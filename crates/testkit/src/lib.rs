//! The test bed: everything that Stanchion's tests stand on, started by the tests themselves.
//!
//! | module | what a test gets |
//! |---|---|
//! | [`cluster`] | a Kubernetes cluster, a namespace of its own, users with real RBAC, the audit log |
//! | [`faults`] | API faults on a script: conflicts, throttling, lost answers, silence, a cut |
//! | [`crash`] | an operator killed at every write, compared with one that was not |
//! | [`postgres`] | throw-away servers of four versions, with their log |
//! | [`proxy`] | a TCP proxy that cuts, delays, holds, or stops at the nth message |
//! | [`collector`] | an OpenTelemetry collector in the process |
//! | [`running`] | an operator in the process, and what its numbers say |
//! | [`report`] | what a run used and what it left out |
//! | [`s3`] | an S3 server in the process |
//! | [`wait`] | waiting with a deadline and a useful failure |
//! | [`process`], [`scratch`] | children and directories that cannot outlive the test (of `stanchion-local`) |
//!
//! A part that cannot be provided fails the test at once: the functions panic and say what to do.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "test code: a test bed that does not stand up is reported by failing the test"
)]
#![allow(
    clippy::print_stderr,
    reason = "what was skipped is said where the test's own output goes"
)]

pub mod certificates;
pub mod cluster;
pub mod collector;
pub mod crash;
pub mod faults;
pub mod operator_log;
pub mod port;
pub mod postgres;
pub mod proxy;
pub mod report;
pub mod running;
pub mod s3;
pub mod unique;
pub mod wait;

pub use stanchion_local::{Error, kubectl, process, scratch};
// What the modules here know them by.
use stanchion_local::{account, cache, error};
