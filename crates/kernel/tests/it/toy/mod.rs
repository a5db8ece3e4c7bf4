//! The toy: a small controller with everything a controller can have, for the kernel to be proved with.
//!
//! A `Widget` reads a Secret, owns a `ConfigMap`, and stands for one thing in a [`World`] outside the
//! cluster, which its finalizer guards. What it shall do wrong is in its spec (for the pure steps) or in
//! the world (for the others, where the fault must be able to come and go without a new generation).

mod controller;
mod operator;
pub(crate) mod server;
mod widget;
mod world;

pub(crate) use controller::{FINALIZER, POKE, Toy};
pub(crate) use operator::{Bed, DEADLINE, Running, environment, settings};
pub(crate) use widget::{Boom, Widget, WidgetSpec, WidgetStatus, crd};
pub(crate) use world::{Thing, World};
