//! The test environment of a controller, on the kernel and the testkit.
//!
//! | module | what a test gets |
//! |---|---|
//! | [`namespace`] | a namespace of a cluster with the kind's CRDs, and waiting |
//! | [`objects`] | its objects: apply, patch, delete, conditions, events |
//! | [`operator`] | an operator with any controllers, built for a test |
//! | [`running`] | that operator while it runs: metrics, requests, shutdown, kill |
//! | [`webhook`] | webhooks that the API server calls |
//! | [`crash`] | the operator is killed at every write and at every statement |
//!
//! The testkit knows neither the kernel nor a kind; this crate knows the kernel, and no kind. What belongs to one kind
//! (its manifests, its SQL) is in the folder `tests/it/test_env` of its crate, in files of the same names: `mod.rs` (the
//! environment and its operator), `objects.rs` (what a user does with objects) and `sql.rs` (the state of the server).

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "test code: an environment that cannot be set up fails the test"
)]

pub mod crash;
pub mod namespace;
pub mod objects;
pub mod operator;
pub mod running;
pub mod webhook;

pub use namespace::{TestCluster, TestNamespace, WAIT_TIMEOUT};
pub use objects::{condition, message, secret_values};
pub use operator::{OperatorOptions, QUICK_BACKOFF, TestOperator, environment, settings};
pub use running::Running;
pub use webhook::ServedWebhooks;
