//! The test environment of Stanchion. The tests start all of it themselves.
//!
//! | module | what a test gets |
//! |---|---|
//! | [`browser`] | a real browser without a window, driven by `WebDriver`, if it is installed |
//! | [`cluster`] | a Kubernetes cluster, a namespace of its own, users with real RBAC, the audit log |
//! | [`files`] | an HTTP server for the files of a folder |
//! | [`faults`] | scripted API faults: conflicts, throttling, lost answers, silence, a cut |
//! | [`crash`] | kills an operator at every write and compares the result with an undisturbed run |
//! | [`helm`] | finds and runs Helm |
//! | [`postgres`] | temporary servers of four versions, with their log |
//! | [`http_proxy`] | an HTTP proxy with its own names, and TLS in front of a server |
//! | [`proxy`] | a TCP proxy that cuts, delays, holds, or stops at the nth message |
//! | [`collector`] | an OpenTelemetry collector in the process |
//! | [`report`] | what a run used and what it skipped |
//! | [`s3`] | an S3 server in the process |
//! | [`wait`] | waiting with a deadline and a useful failure |
//! | [`process`], [`scratch`] | children and directories that cannot outlive the test (of `stanchion-local`) |
//!
//! If something is not available, the functions panic and say what to do, so the test fails at once.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "test code: an environment that cannot be set up fails the test"
)]
#![allow(
    clippy::print_stderr,
    reason = "what was skipped is said where the test's own output goes"
)]

pub mod browser;
pub mod certificates;
pub mod cluster;
pub mod collector;
pub mod crash;
pub mod faults;
pub mod files;
pub mod helm;
pub mod http_proxy;
pub mod operator_log;
pub mod port;
pub mod postgres;
pub mod proxy;
pub mod report;
pub mod s3;
pub mod unique;
pub mod wait;

pub use stanchion_local::{Error, kubectl, process, scratch};
// For the modules of this crate.
use stanchion_local::{account, cache, error};
