//! What the controller says about a `PostgresPolicy`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Mode;
use crate::status::Status;

/// Status of a `PostgresPolicy`. No field is required: a status that another version wrote stays readable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
pub struct PostgresPolicyStatus {
    /// The generation of the spec that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The same, under the name by which tools for all kinds look for it.
    #[serde(
        default,
        rename = "observedGeneration",
        skip_serializing_if = "Option::is_none"
    )]
    pub kstatus_generation: Option<i64>,
    /// The generation that was tried last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_attempted_generation: Option<i64>,
    /// When something was last applied, or its outcome last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub last_successful_reconcile_time: Option<Timestamp>,
    /// Whether the last pass applied or only looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_reconcile_mode: Option<Mode>,
    /// The value of `reconcile.pgroles.io/requestedAt` that was last tried.
    #[serde(
        default,
        rename = "lastAttemptedReconcileAt",
        skip_serializing_if = "Option::is_none"
    )]
    pub last_attempted_reconcile_at: Option<String>,
    /// The value of `reconcile.pgroles.io/requestedAt` that was last done.
    #[serde(
        default,
        rename = "lastHandledReconcileAt",
        skip_serializing_if = "Option::is_none"
    )]
    pub last_handled_reconcile_at: Option<String>,
    /// Which database this is, by its own word: the server's system identifier and the database's number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub managed_database_identity: Option<String>,
    /// The roles that this policy defines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owned_roles: Vec<String>,
    /// The schemas that this policy owns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owned_schemas: Vec<String>,
    /// What the last plan changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change_summary: Option<ChangeSummary>,
    /// What would be done, passwords blanked out, as far as a status has room for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned_sql: Option<String>,
    /// Whether `planned_sql` is only the beginning.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub planned_sql_truncated: bool,
    /// What should be known beside the changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plan_warnings: Vec<String>,
    /// The plan that is waiting, or was carried out last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_plan_ref: Option<PlanRef>,
    /// Why the last reconcile failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// Failures in a row that pass by themselves.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub transient_failure_count: i32,
    /// A salted fingerprint of each password that was applied; it tells a change and nothing else.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub applied_password_source_versions: BTreeMap<String, String>,
    /// The conditions.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::status::lenient_conditions"
    )]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // As serde calls it.
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

/// A plan of the same namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanRef {
    /// Its name.
    pub name: String,
}

macro_rules! change_summary {
    ($($(#[$doc:meta])* $field:ident,)*) => {
        /// How much a plan does, in numbers.
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
    /// GRANT role WITH other options.
    members_options_changed,
    /// REVOKE role.
    members_removed,
    /// ALTER ROLE … PASSWORD.
    passwords_set,
    /// Roles whose sessions are ended.
    sessions_terminated,
    /// All changes.
    total,
}
