//! The custom resources: schemas, defaults, validation rules and names. No I/O.
//!
//! Every rule that the API server can check is part of the schema, so `kubectl apply` reports mistakes and the stored
//! object shows every default.

// kube's schema derive generates a helper type beside each type.
#![allow(unreachable_pub)]
// One type may have several print columns.
#![allow(clippy::duplicated_attributes)]

pub mod duration;
pub mod gitlab;
pub mod instance;
pub mod loose;
pub mod moment;
pub mod names;
pub mod policy;
mod schema;
pub mod status;
pub mod supabase;
#[cfg(test)]
mod tests;
pub mod user;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

pub use gitlab::{GitlabInstance, GitlabInstanceSpec, GitlabInstanceStatus, GitlabProfile, GitlabVersionMap};
pub use instance::{PostgresInstance, PostgresInstanceSpec, PostgresInstanceStatus};
pub use policy::{
    PostgresPolicy, PostgresPolicyPlan, PostgresPolicyPlanStatus, PostgresPolicySpec, PostgresPolicyStatus,
};
pub use supabase::{SupabaseProject, SupabaseProjectSpec, SupabaseProjectStatus};
pub use user::{PostgresUser, PostgresUserSpec, PostgresUserStatus};

/// Every CRD, in the order of the documentation.
pub fn crds() -> Vec<CustomResourceDefinition> {
    [
        PostgresUser::crd(),
        PostgresInstance::crd(),
        schema::unseen(SupabaseProject::crd(), &serde_json::json!({ "phase": "Pending" })),
        PostgresPolicy::crd(),
        PostgresPolicyPlan::crd(),
        GitlabInstance::crd(),
        GitlabProfile::crd(),
        GitlabVersionMap::crd(),
    ]
    .into_iter()
    .map(schema::tidy)
    .collect()
}
