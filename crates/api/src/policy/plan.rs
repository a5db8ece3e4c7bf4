//! `PostgresPolicyPlan`: what a policy would do or did, for a person to read, approve or reject.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ChangeSummary, PlanRef, ReconciliationMode};
use crate::status::impl_status;

/// What a plan is about.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "pgroles.io",
    version = "v1alpha1",
    kind = "PostgresPolicyPlan",
    plural = "postgrespolicyplans",
    singular = "postgrespolicyplan",
    shortname = "pgplan",
    category = "pgroles",
    namespaced,
    status = "PostgresPolicyPlanStatus",
    derive = "PartialEq",
    doc = "What a PostgresPolicy would do or did. Approve it with the annotation pgroles.io/approved=true.",
    printcolumn(name = "Policy", type_ = "string", json_path = ".spec.policyRef.name"),
    printcolumn(name = "Mode", type_ = "string", json_path = ".spec.reconciliationMode"),
    printcolumn(
        name = "Approved",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Approved\")].status"
    ),
    printcolumn(
        name = "Changes",
        type_ = "integer",
        json_path = ".status.changeSummary.total"
    ),
    printcolumn(
        name = "SQL Stmts",
        type_ = "integer",
        json_path = ".status.sqlStatements",
        priority = 1
    ),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(
        name = "SQL",
        type_ = "string",
        json_path = ".status.sqlRef.name",
        priority = 1
    ),
    printcolumn(name = "Hash", type_ = "string", json_path = ".status.sqlHash", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct PostgresPolicyPlanSpec {
    /// The policy.
    pub policy_ref: PlanRef,
    /// The generation of the policy that the plan was made of.
    pub policy_generation: i64,
    /// How far the plan may go.
    pub reconciliation_mode: ReconciliationMode,
    /// The roles that the policy defines.
    #[serde(default)]
    pub owned_roles: Vec<String>,
    /// The schemas that the policy owns.
    #[serde(default)]
    pub owned_schemas: Vec<String>,
    /// Which database, by its own word.
    pub managed_database_identity: String,
}

/// How far a plan has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PlanPhase {
    /// It waits for a decision.
    #[default]
    Pending,
    /// It may be carried out.
    Approved,
    /// It is being carried out.
    Applying,
    /// It was carried out.
    Applied,
    /// It could not be carried out.
    Failed,
    /// Another plan took its place.
    Superseded,
    /// A person said no.
    Rejected,
}

impl PlanPhase {
    /// As it is written in a status.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Approved => "Approved",
            Self::Applying => "Applying",
            Self::Applied => "Applied",
            Self::Failed => "Failed",
            Self::Superseded => "Superseded",
            Self::Rejected => "Rejected",
        }
    }

    /// Whether nothing more comes of it.
    pub fn is_ended(self) -> bool {
        matches!(
            self,
            Self::Applied | Self::Failed | Self::Superseded | Self::Rejected
        )
    }
}

/// Status of a `PostgresPolicyPlan`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.conditions) || !(self.conditions.exists(c, c.type == 'Approved' && c.status == 'True') && self.conditions.exists(c, c.type == 'Denied' && c.status == 'True'))")
        .message("a plan is approved or denied, not both"),
    validation = Rule::new("!has(oldSelf.changeDigest) || (has(self.changeDigest) && self.changeDigest == oldSelf.changeDigest)")
        .message("changeDigest is what was decided on: it cannot change"),
    validation = Rule::new("!has(oldSelf.decidedBy) || (has(self.decidedBy) && self.decidedBy == oldSelf.decidedBy)")
        .message("decidedBy cannot change"),
)]
pub struct PostgresPolicyPlanStatus {
    /// How far it has come.
    #[serde(default)]
    pub phase: PlanPhase,
    /// The generation of the plan that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The conditions `Approved` and `Denied`.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::status::lenient_conditions"
    )]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// Who decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<Decider>,
    /// The plan's identity: what it does, and not with which salt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub change_digest: Option<String>,
    /// What it changes, in numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change_summary: Option<ChangeSummary>,
    /// The SQL, passwords blanked out, where it is short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sql_inline: Option<String>,
    /// Where the SQL is, where it is long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sql_ref: Option<SqlRef>,
    /// Whether `sqlInline` is only the beginning.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sql_truncated: bool,
    /// How many statements there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sql_statements: Option<i64>,
    /// The SQL's size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sql_original_bytes: Option<i64>,
    /// Its size as it is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sql_stored_bytes: Option<i64>,
    /// The plan's identity, under its former name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sql_hash: Option<String>,
    /// The hash of the SQL as it is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redacted_sql_hash: Option<String>,
    /// When it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub computed_at: Option<Timestamp>,
    /// Since when it is being carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub applying_since: Option<Timestamp>,
    /// When it was carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub applied_at: Option<Timestamp>,
    /// When it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub failed_at: Option<Timestamp>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}
impl_status!(PostgresPolicyPlanStatus);

/// Who decided.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Decider {
    /// The authenticated user; without the webhook, the field manager of the annotation.
    #[schemars(length(min = 1, max = 512))]
    pub username: String,
    /// The number, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub uid: Option<String>,
    /// The groups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub groups: Vec<String>,
}

/// Where the SQL of a plan is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SqlRef {
    /// The `ConfigMap`.
    pub name: String,
    /// The key in its `binaryData`.
    pub key: String,
    /// How it is compressed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<Compression>,
}

/// How SQL is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Compression {
    Gzip,
}
