//! Status of a `PostgresPolicy`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Mode;
use crate::status::Status;

/// Status of a `PostgresPolicy`. No field is required, so a status that another version wrote stays readable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
pub struct PostgresPolicyStatus {
    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `observed_generation`, under the name that generic Kubernetes tools expect.
    #[serde(
        default,
        rename = "observedGeneration",
        skip_serializing_if = "Option::is_none"
    )]
    pub kstatus_generation: Option<i64>,
    /// The generation of the last attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_attempted_generation: Option<i64>,
    /// When changes were last applied, or the outcome last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub last_successful_reconcile_time: Option<Timestamp>,
    /// The mode of the last reconcile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_reconcile_mode: Option<Mode>,
    /// The last value of `reconcile.pgroles.io/requestedAt` that was attempted.
    #[serde(
        default,
        rename = "lastAttemptedReconcileAt",
        skip_serializing_if = "Option::is_none"
    )]
    pub last_attempted_reconcile_at: Option<String>,
    /// The last value of `reconcile.pgroles.io/requestedAt` that was completed.
    #[serde(
        default,
        rename = "lastHandledReconcileAt",
        skip_serializing_if = "Option::is_none"
    )]
    pub last_handled_reconcile_at: Option<String>,
    /// Identity of the database, as the server reports it: system identifier and database OID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub managed_database_identity: Option<String>,
    /// Identity of the database in which a plan of this policy was last applied. Without one, `deletionPolicy: Revoke` revokes
    /// nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_database_identity: Option<String>,
    /// The roles that this policy defines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owned_roles: Vec<String>,
    /// The schemas that this policy owns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owned_schemas: Vec<String>,
    /// The number of changes in the last plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change_summary: Option<ChangeSummary>,
    /// The SQL that would be run, without passwords, up to a size limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned_sql: Option<String>,
    /// Whether `planned_sql` is cut off.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub planned_sql_truncated: bool,
    /// Warnings about the plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plan_warnings: Vec<String>,
    /// The plan that waits, or that was applied last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_plan_ref: Option<PlanRef>,
    /// Why the last reconcile failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// Number of consecutive failures that are retried automatically.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub transient_failure_count: i32,
    /// A salted fingerprint of each applied password. It only shows whether the password changed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub applied_password_source_versions: BTreeMap<String, String>,
    /// The state of the policy, as Kubernetes conditions.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::status::lenient_conditions"
    )]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // Serde requires this signature.
fn is_zero(number: &i32) -> bool {
    *number == 0
}

impl Status for PostgresPolicyStatus {
    fn conditions(&self) -> &[Condition] {
        &self.conditions
    }

    fn conditions_mut(&mut self) -> &mut Vec<Condition> {
        &mut self.conditions
    }

    fn set_observed_generation(&mut self, generation: Option<i64>) {
        self.observed_generation = generation;
        self.kstatus_generation = generation;
        self.last_attempted_generation = generation;
    }
}

/// A policy or a plan in the same namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanRef {
    /// Name of the object.
    pub name: String,
}

macro_rules! change_summary {
    ($($(#[$doc:meta])* $field:ident,)*) => {
        /// The number of changes of each kind.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        pub struct ChangeSummary {
            $($(#[$doc])* #[serde(default)] pub $field: i32,)*
        }
    };
}

change_summary! {
    /// CREATE ROLE.
    roles_created,
    /// ALTER ROLE and COMMENT ON ROLE.
    roles_altered,
    /// DROP ROLE.
    roles_dropped,
    /// CREATE SCHEMA.
    schemas_created,
    /// ALTER SCHEMA … OWNER TO.
    schema_owners_altered,
    /// GRANT.
    grants_added,
    /// REVOKE.
    grants_revoked,
    /// ALTER DEFAULT PRIVILEGES … GRANT.
    default_privileges_set,
    /// ALTER DEFAULT PRIVILEGES … REVOKE.
    default_privileges_revoked,
    /// GRANT role.
    members_added,
    /// GRANT role with other options.
    members_options_changed,
    /// REVOKE role.
    members_removed,
    /// ALTER ROLE … PASSWORD.
    passwords_set,
    /// Roles whose sessions are terminated.
    sessions_terminated,
    /// The number of all changes.
    total,
}
