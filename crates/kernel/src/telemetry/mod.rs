//! Observability: metrics, logs, traces and health checks.
//!
//! | module | for |
//! |---|---|
//! | [`metrics`] | Prometheus, with controller-runtime's names, so that existing dashboards and alerts work |
//! | [`api_calls`] | the layer that counts and times each request to the Kubernetes API |
//! | [`logs`] | JSON or text lines that name the object and the reconcile |
//! | [`health`] | `/livez`, `/readyz` and `/metrics` |
//! | [`guard`] | access control for `/metrics` |
//! | `otlp` | traces and metrics to an OpenTelemetry collector, with the cargo feature of that name |

pub mod api_calls;
pub mod guard;
pub mod health;
pub mod logs;
pub mod metrics;
#[cfg(feature = "otlp")]
pub mod otlp;

pub use metrics::{ControllerMetrics, Metrics};
