//! What the operator tells the outside about itself: numbers, log lines, traces and probes.
//!
//! | module | for |
//! |---|---|
//! | [`metrics`] | Prometheus, with controller-runtime's names, so that existing dashboards and alerts work |
//! | [`api_calls`] | the layer that counts and times each request to the Kubernetes API |

pub mod api_calls;
pub mod metrics;

pub use metrics::{ControllerMetrics, Metrics};
