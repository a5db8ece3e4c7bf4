//! How a project is reached, and by whom; how many pods there are, and how many may be away. Each object is there
//! because the spec asks for it, and goes when it no longer does.

mod access;
mod pods;

use serde_json::{Value, json};

use crate::components::{MANAGED_BY, Project};

pub use access::{http_route, ingress, network_policies};
pub use pods::{autoscaler, disruption_budget};

/// The labels of what belongs to the project and to no component.
fn labels(project: &Project<'_>) -> Value {
    json!({
        "app.kubernetes.io/name": "supabase",
        "app.kubernetes.io/instance": project.name,
        "app.kubernetes.io/part-of": "supabase",
        "app.kubernetes.io/managed-by": MANAGED_BY,
    })
}

/// The labels that all pods of the project have, and no others.
fn pods_of(project: &Project<'_>) -> Value {
    json!({
        "app.kubernetes.io/instance": project.name,
        "app.kubernetes.io/part-of": "supabase",
        "app.kubernetes.io/managed-by": MANAGED_BY,
    })
}
