//! Status of a `PostgresUser`.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::InstanceRef;
use crate::status::impl_status;

/// Status of a `PostgresUser`. No field is required, so a status that an older version wrote stays readable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct PostgresUserStatus {
    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The state of the user in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// The state of the user in one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Whether the role was created or adopted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<bool>,
    /// Name of the role on the server. A deletion removes this role, even if the spec has changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provisioned_username: Option<String>,
    /// The database of the privileges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provisioned_database: Option<String>,
    /// The instance that the role is on. Unset for the operator's default server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provisioned_instance_ref: Option<InstanceRef>,
    /// When the role was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub created_at: Option<Timestamp>,
    /// When the operator last changed something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub last_updated: Option<Timestamp>,
    /// Whether the role existed before. A deletion does not drop it then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adopted: Option<bool>,
    /// OID of the role. A role with the same name and another OID is another role.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "roleOID")]
    pub role_oid: Option<i64>,
    /// Proves that the operator created the role with this OID for this object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role_seal: Option<String>,
    /// Triggers, functions and similar objects, up to a limit, that a deletion disarmed before it reassigned them,
    /// because they would have run with the privileges of their new owner.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disarmed: Vec<String>,
    /// A salted fingerprint of the applied password. It only shows whether the password changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_secret_hash: Option<String>,
    /// The credentials Secret that was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_secret_name: Option<String>,
    /// Credentials Secrets with earlier names. They are deleted when the current one is in use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stale_secrets: Vec<String>,
    /// The server, as `host:port`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// What the operator granted and can revoke again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<AppliedGrant>,
    /// The databases in which the operator made changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub databases: Vec<AppliedDatabase>,
    /// The state of the password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<PasswordStatus>,
    /// Drift that was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<DriftStatus>,
    /// The statements that would be run (`mode: Plan`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanStatus>,
    /// The last value of the annotation `db.example.com/rotate-at` that the operator acted on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotated_at_request: Option<String>,
    /// The state of the user, as Kubernetes conditions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

impl_status!(PostgresUserStatus);

/// The state of a `PostgresUser` in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum Phase {
    Creating,
    Ready,
    Failed,
    Deleting,
    Suspended,
}

/// Something that the operator granted to the role, and revokes when the spec no longer contains it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppliedGrant {
    /// Kind of the grant.
    pub kind: GrantKind,
    /// The database of the grant. Unset for grants on the whole server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// The schema of the grant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// The role of a membership, the owner of default privileges, or the name of a parameter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The granted privileges.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub privileges: Vec<String>,
}

/// Kinds of grants.
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

/// A database in which the operator made changes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppliedDatabase {
    /// Name of the database.
    pub name: String,
    /// Whether the operator created it for this object. A deletion does not rely on this field: it checks the database
    /// itself.
    #[serde(default)]
    pub created: bool,
}

/// The state of the password.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PasswordStatus {
    /// When the password was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub last_changed: Option<Timestamp>,
    /// When the password will be rotated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub next_rotation: Option<Timestamp>,
    /// VALID UNTIL of the role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub expires_at: Option<Timestamp>,
    /// The login that applications use (`DualUser`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_login: Option<String>,
    /// Logins in their grace period (`DualUser`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retiring_logins: Vec<String>,
}

/// Drift that was found.
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

/// The statements that would be run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanStatus {
    /// The statements without secrets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sql: Vec<String>,
    /// Identifies the plan by its changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
}
