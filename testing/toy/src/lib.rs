//! The toy: a small controller that uses every feature of the kernel, for tests. The kernel's tests run it against a
//! cluster, the simulator with paused time.
//!
//! A `Widget` reads a Secret, owns a `ConfigMap`, and represents one thing in a [`World`] outside of the cluster, which
//! its finalizer guards. Its faults are configured in its spec (for the pure steps) or in the world (for the others,
//! whose faults must be able to come and go without a new generation).

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "test code: a world that is broken is reported by failing the test, and the toy panics on demand"
)]

mod controller;
#[allow(
    unreachable_pub,
    reason = "the derive of `KubeSchema` repeats the type in a private place"
)]
mod widget;
mod world;

pub use controller::{FINALIZER, POKE, WidgetCleanup, WidgetController};
pub use widget::{Boom, Widget, WidgetSpec, WidgetStatus, crd};
pub use world::{Thing, World};
