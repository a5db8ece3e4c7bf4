//! The custom resources: schema, defaults, rules and names. No I/O.
//!
//! A rule that the API server can check lives in the schema, so that a mistake is refused by
//! `kubectl apply` and every default is visible in the stored object.

// kube's schema derive expands into a helper type of its own beside each type.
#![allow(unreachable_pub)]
// Several print columns of one type are not a mistake.
#![allow(clippy::duplicated_attributes)]

#[cfg(test)]
mod accepted;
pub mod duration;
#[cfg(test)]
mod examples;
pub mod gitlab;
pub mod instance;
pub mod loose;
pub mod moment;
pub mod names;
pub mod policy;
mod schema;
pub mod status;
pub mod supabase;
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

/// Every custom resource definition, in the order in which they are documented.
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
