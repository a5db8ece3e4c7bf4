//! `PostgresPolicyPlan`: the changes of a policy, for a person to review, approve or reject.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ChangeSummary, PlanRef, ReconciliationMode};
use crate::status::impl_status;

/// The policy and the database of a plan.
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
    doc = "The planned or applied changes of a PostgresPolicy. Approve it with the annotation pgroles.io/approved=true.",
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
#[x_kube(
    validation = Rule::new("self == oldSelf")
        .message("a plan cannot change; delete it, and the operator computes it again"),
)]
pub struct PostgresPolicyPlanSpec {
    /// The policy of the plan.
    pub policy_ref: PlanRef,
    /// The generation of the policy that the plan was computed from.
    pub policy_generation: i64,
    /// Which changes the plan may contain.
    pub reconciliation_mode: ReconciliationMode,
    /// The roles that the policy defines.
    #[serde(default)]
    pub owned_roles: Vec<String>,
    /// The schemas that the policy owns.
    #[serde(default)]
    pub owned_schemas: Vec<String>,
    /// Identity of the database, as the server reports it.
    pub managed_database_identity: String,
}

/// The state of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PlanPhase {
    /// The plan waits for a decision.
    #[default]
    Pending,
    /// The plan may be applied.
    Approved,
    /// The operator is applying the plan.
    Applying,
    /// The plan was applied.
    Applied,
    /// Applying the plan failed.
    Failed,
    /// A newer plan replaced the plan.
    Superseded,
    /// A person rejected the plan.
    Rejected,
}

impl PlanPhase {
    /// The value in the status.
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

    /// Whether this is a final state.
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
    /// The state of the plan.
    #[serde(default)]
    pub phase: PlanPhase,
    /// The generation of the plan that this status describes.
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
    /// The user who approved or rejected the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<Decider>,
    /// Identifies the plan by its changes, without password salts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub change_digest: Option<String>,
    /// The number of changes of each kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change_summary: Option<ChangeSummary>,
    /// The SQL without passwords, if it is short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sql_inline: Option<String>,
    /// Where the SQL is stored, if it is long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sql_ref: Option<SqlRef>,
    /// Whether `sqlInline` is cut off.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sql_truncated: bool,
    /// The number of SQL statements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sql_statements: Option<i64>,
    /// Size of the SQL in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sql_original_bytes: Option<i64>,
    /// Stored size of the SQL in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sql_stored_bytes: Option<i64>,
    /// The former name of `changeDigest`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sql_hash: Option<String>,
    /// The hash of the SQL without passwords.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redacted_sql_hash: Option<String>,
    /// When the plan was computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub computed_at: Option<Timestamp>,
    /// When the operator started to apply the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub applying_since: Option<Timestamp>,
    /// When the plan was applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub applied_at: Option<Timestamp>,
    /// When applying the plan failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub failed_at: Option<Timestamp>,
    /// Why applying the plan failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}
impl_status!(PostgresPolicyPlanStatus);

/// The user who approved or rejected a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Decider {
    /// The authenticated user; without the webhook, the field manager of the annotation.
    #[schemars(length(min = 1, max = 512))]
    pub username: String,
    /// UID of the user, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub uid: Option<String>,
    /// Groups of the user.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub groups: Vec<String>,
}

/// Where the SQL of a plan is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SqlRef {
    /// Name of the `ConfigMap`.
    pub name: String,
    /// Key in `binaryData` of the `ConfigMap`.
    pub key: String,
    /// The compression of the SQL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<Compression>,
}

/// The compression of stored SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Compression {
    Gzip,
}
