//! What the operator tells the outside about itself: numbers, log lines, traces and probes.
//!
//! | module | for |
//! |---|---|
//! | [`metrics`] | Prometheus, with controller-runtime's names, so that existing dashboards and alerts work |
//! | [`api_calls`] | the layer that counts and times each request to the Kubernetes API |
//! | [`logs`] | JSON or text lines that name the object and the reconcile |
//! | [`health`] | `/livez`, `/readyz` and `/metrics` |
//! | [`guard`] | who may read `/metrics` from outside |
//! | `otlp` | traces and numbers to an OpenTelemetry collector, with the cargo feature of that name |

pub mod api_calls;
pub mod guard;
pub mod health;
pub mod logs;
pub mod metrics;
#[cfg(feature = "otlp")]
pub mod otlp;

pub use metrics::{ControllerMetrics, Metrics};
