//! What the controller says about a `PostgresUser`.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::InstanceRef;
use crate::status::impl_status;

/// Status of a `PostgresUser`. No field is required: a status that an older version wrote stays readable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct PostgresUserStatus {
    /// The generation of the spec that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// One word for `kubectl get`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// One sentence for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Whether the role was made, or adopted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<bool>,
    /// The role that was made: what a deletion removes, whatever the spec says by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provisioned_username: Option<String>,
    /// The database that the privileges are in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provisioned_database: Option<String>,
    /// The instance that the role is on; none for the operator's default server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provisioned_instance_ref: Option<InstanceRef>,
    /// When the role was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub created_at: Option<Timestamp>,
    /// When something was last done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub last_updated: Option<Timestamp>,
    /// The role was there before and is not dropped with the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adopted: Option<bool>,
    /// The role's oid: a role of the same name with another one is another role.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "roleOID")]
    pub role_oid: Option<i64>,
    /// Proves that the operator made the role with this oid for this object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role_seal: Option<String>,
    /// What a deletion has disarmed before it changed hands, some of it: what would have run with its owner's rights.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disarmed: Vec<String>,
    /// A salted fingerprint of the password that was applied; it tells a change and nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_secret_hash: Option<String>,
    /// The Secret that was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_secret_name: Option<String>,
    /// Secrets that were written under other names, and are deleted when the present one is in use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stale_secrets: Vec<String>,
    /// The server, as `host:port`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// What was granted, for an exact revocation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<AppliedGrant>,
    /// The databases in which something was done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub databases: Vec<AppliedDatabase>,
    /// The password's life.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<PasswordStatus>,
    /// What was changed by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<DriftStatus>,
    /// What would be done (`mode: Plan`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanStatus>,
    /// The value of the annotation `db.example.com/rotate-at` that was acted on last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotated_at_request: Option<String>,
    /// The conditions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

impl_status!(PostgresUserStatus);

/// The life of a `PostgresUser` in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum Phase {
    Creating,
    Ready,
    Failed,
    Deleting,
    Suspended,
}

/// One thing that the operator gave the role, and takes back when the spec no longer says it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppliedGrant {
    /// What it is.
    pub kind: GrantKind,
    /// The database it is in; none for what belongs to the whole server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// The schema it is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// The role of a membership, the owner of default privileges, or the name of a parameter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub privileges: Vec<String>,
}

/// What can be given to a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum GrantKind {
    Database,
    Schema,
    Tables,
    Sequences,
    Functions,
    DefaultTables,
    DefaultSequences,
    DefaultFunctions,
    Membership,
    Parameter,
}

/// A database in which something was done.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppliedDatabase {
    /// Name.
    pub name: String,
    /// Whether the operator made it for this object. A deletion does not rely on it: it looks at the database itself.
    #[serde(default)]
    pub created: bool,
}

/// The life of the password.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PasswordStatus {
    /// When it was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub last_changed: Option<Timestamp>,
    /// When it will be replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub next_rotation: Option<Timestamp>,
    /// `validUntil` of the role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub expires_at: Option<Timestamp>,
    /// The login to use (`DualUser`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_login: Option<String>,
    /// Logins whose grace period runs (`DualUser`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retiring_logins: Vec<String>,
}

/// What was changed by hand.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DriftStatus {
    /// When the drift was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub last_checked: Option<Timestamp>,
    /// What differs from the spec.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub detected: Vec<String>,
}

/// What would be done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanStatus {
    /// The statements, without any secret.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sql: Vec<String>,
    /// Identifies the plan by what it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
}
