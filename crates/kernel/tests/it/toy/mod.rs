//! The toy (`crates/toy`) in a namespace of a real cluster, and on a scripted API server.

mod operator;
pub(crate) mod server;

pub(crate) use operator::{Bed, DEADLINE, Running, environment, settings};
pub(crate) use stanchion_toy::{
    Boom, FINALIZER, POKE, Thing, Toy, Widget, WidgetSpec, WidgetStatus, World, crd,
};
