//! `PostgresPolicy` and `PostgresPolicyPlan`: declared roles and privileges of a database.
//!
//! The fields that declare roles and privileges have the types of `stanchion_manifest`, as those of the manifest of
//! `stanchion roles` have, so one file works with the command line and with the cluster. Their names are in `snake_case`
//! like the manifest's; the names of Kubernetes' own fields are not.

mod connection;
mod plan;
mod status;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use connection::{Auth, AuthType, CaSecret, Connection, Params, SecretKey};
pub use plan::{
    Compression, Decider, PlanPhase, PostgresPolicyPlan, PostgresPolicyPlanSpec, PostgresPolicyPlanStatus,
    SqlRef,
};
pub use stanchion_manifest::{
    AuthProvider, AuthProviderType, DefaultPrivilege, DefaultPrivilegeGrant, DefaultPrivilegeScope, Ensure,
    GeneratePassword, Grant, Member, Membership, Object, ObjectType, Privilege, Profile, ProfileGrant,
    ProfileObject, Retirement, Schema, ScopeType, SecretName,
};
pub use status::{ChangeSummary, PlanRef, PostgresPolicyStatus};

/// A role to create if missing.
pub type Role = stanchion_manifest::Role<Password>;

/// The API group of both kinds.
pub const GROUP: &str = "pgroles.io";
/// The finalizer of a `PostgresPolicy`.
pub const FINALIZER: &str = "pgroles.io/finalizer";
/// The label with the policy's name on plans, their `ConfigMaps` and generated Secrets.
pub const POLICY_LABEL: &str = "pgroles.io/policy";
/// The label with the role on a generated Secret, shortened to a valid label value.
pub const ROLE_LABEL: &str = "pgroles.io/role";
/// The label with the plan's name on the `ConfigMap` with its SQL.
pub const PLAN_LABEL: &str = "pgroles.io/plan";
/// The label with the database on a plan, shortened to a valid label value.
pub const DATABASE_LABEL: &str = "pgroles.io/database-identity";

/// Annotations of both kinds.
pub mod annotation {
    /// On a policy: any new value triggers a reconcile.
    pub const REQUESTED_AT: &str = "reconcile.pgroles.io/requestedAt";
    /// On a plan: `"true"` approves it.
    pub const APPROVED: &str = "pgroles.io/approved";
    /// On a plan: `"true"` rejects it, even if it is approved.
    pub const REJECTED: &str = "pgroles.io/rejected";
    /// On a plan: who approved or rejected it, with a seal. The operator's webhook writes it.
    pub const DECIDED_BY: &str = "pgroles.io/decided-by";
    /// On a plan: the first lines of its SQL.
    pub const SQL_PREVIEW: &str = "pgroles.io/sql-preview";
    /// On a plan: a summary of its changes in one line.
    pub const SUMMARY: &str = "pgroles.io/summary";
    /// On a plan: its change digest.
    pub const SQL_HASH: &str = "pgroles.io/sql-hash";
    /// On a plan: the hash of its SQL without passwords.
    pub const REDACTED_SQL_HASH: &str = "pgroles.io/redacted-sql-hash";
    /// On a plan: the size of its SQL in bytes.
    pub const SQL_ORIGINAL_BYTES: &str = "pgroles.io/sql-original-bytes";
    /// On a plan: the stored size of its SQL in bytes.
    pub const SQL_STORED_BYTES: &str = "pgroles.io/sql-stored-bytes";
}

/// Condition types of a `PostgresPolicy`. Every kind also has `Reconciling` and `Stalled`.
pub mod condition {
    /// The last reconcile succeeded.
    pub const READY: &str = "Ready";
    /// The last reconcile failed.
    pub const DEGRADED: &str = "Degraded";
    /// The database differs from the policy.
    pub const DRIFTED: &str = "Drifted";
    /// Another policy declares the same objects.
    pub const CONFLICT: &str = "Conflict";
    /// The policy is suspended.
    pub const PAUSED: &str = "Paused";
    /// The spec contains a password that anyone who can read the policy can see.
    pub const PASSWORD_IN_SPEC: &str = "PasswordInSpec";
    /// The operator reached the database. The reason says whether the server has proven its identity.
    pub const CONNECTED: &str = "DatabaseConnected";
    /// Roles of the policy hold privileges or memberships that the policy does not manage.
    pub const UNMANAGED: &str = "UnmanagedPrivileges";
}

/// Roles and privileges of one database.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "pgroles.io",
    version = "v1alpha1",
    kind = "PostgresPolicy",
    plural = "postgrespolicies",
    singular = "postgrespolicy",
    shortname = "pgr",
    category = "pgroles",
    namespaced,
    status = "PostgresPolicyStatus",
    derive = "PartialEq",
    doc = "Declares the roles, privileges, default privileges and memberships of a database.",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    ),
    printcolumn(name = "Mode", type_ = "string", json_path = ".spec.mode"),
    printcolumn(
        name = "Recon",
        type_ = "string",
        json_path = ".spec.reconciliation_mode",
        priority = 1
    ),
    printcolumn(
        name = "Drift",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Drifted\")].status"
    ),
    printcolumn(
        name = "Changes",
        type_ = "integer",
        json_path = ".status.change_summary.total"
    ),
    printcolumn(
        name = "Last Reconcile",
        type_ = "date",
        json_path = ".status.last_successful_reconcile_time"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
pub struct PostgresPolicySpec {
    /// The database and the login.
    pub connection: Connection,
    /// How often the operator checks the database for drift: `5m`, `1h30m`, or a number of seconds.
    #[serde(default = "default_interval")]
    pub interval: String,
    /// Stops reconciliation. The database and the plans stay as they are.
    #[serde(default)]
    pub suspend: bool,
    /// `apply` changes the database. `observe` (formerly `plan`) only reports what would change.
    #[serde(default)]
    pub mode: Mode,
    /// Which changes are allowed: `authoritative` makes what the policy manages exactly as declared, `additive` never
    /// revokes or drops, `adopt` is authoritative but drops no role.
    #[serde(default)]
    pub reconciliation_mode: ReconciliationMode,
    /// Whether a plan waits for approval. Default: `auto` in mode `apply`, `manual` otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// What happens to granted privileges when the policy is deleted.
    #[serde(default, rename = "deletionPolicy")]
    pub deletion_policy: DeletionPolicy,
    /// Profiles that several policies share. A profile in `profiles` overrides a shared one with the same name.
    #[serde(default, rename = "profilesFrom", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub profiles_from: Vec<ProfilesFrom>,
    /// Number of finished plans to keep. Default: 10.
    #[serde(default, rename = "planHistoryLimit", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub plan_history_limit: Option<u32>,
    /// Owner of declared schemas and default privileges that do not name an owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub default_owner: Option<String>,
    /// Name pattern of generated roles, unless a schema sets its own. Default: `{schema}-{profile}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub role_pattern: Option<String>,
    /// Whether `adopt` mode may transfer existing schemas to their declared owner.
    #[serde(default)]
    pub allow_schema_owner_transfers: bool,
    /// Where logins come from. Informational: the operator ignores it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub auth_providers: Vec<AuthProvider>,
    /// Templates. Each profile that is bound to a schema becomes a role.
    #[serde(default)]
    #[schemars(extend("maxProperties" = 128))]
    pub profiles: BTreeMap<String, Profile>,
    /// Schemas to create if missing, with the profiles that are bound to them.
    #[serde(default)]
    #[schemars(length(max = 1024))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub schemas: Vec<Schema>,
    /// Roles to create if missing, with all of their attributes.
    #[serde(default)]
    #[schemars(length(max = 1024))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub roles: Vec<Role>,
    /// Privileges on objects.
    #[serde(default)]
    #[schemars(length(max = 4096))]
    pub grants: Vec<Grant>,
    /// Privileges on future objects.
    #[serde(default)]
    #[schemars(length(max = 512))]
    pub default_privileges: Vec<DefaultPrivilege>,
    /// Members of roles.
    #[serde(default)]
    #[schemars(length(max = 2048))]
    pub memberships: Vec<Membership>,
    /// Roles to drop. The operator drops no other roles.
    #[serde(default)]
    #[schemars(length(max = 512))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["role".into()]))]
    pub retirements: Vec<Retirement>,
}

/// Source of a password: `secretRef` or `generate`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Password {
    /// A Secret in the same namespace with the password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretName>,
    /// Key in the Secret. Default: the role's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub secret_key: Option<String>,
    /// The operator generates the password and stores it in a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generate: Option<GeneratePassword>,
}

fn default_interval() -> String {
    "5m".into()
}

/// Whether the database is changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Changes the database.
    #[default]
    Apply,
    /// Does not change the database. Plans show what would be done.
    Observe,
    /// The former name of `observe`.
    Plan,
}

impl Mode {
    /// Whether this mode changes the database.
    pub fn applies(self) -> bool {
        self == Self::Apply
    }
}

/// Which changes are allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReconciliationMode {
    /// Makes what the policy manages exactly as declared.
    #[default]
    Authoritative,
    /// Only creates and grants; never revokes or drops.
    Additive,
    /// Like authoritative, but drops no role.
    Adopt,
}

/// Whether a plan waits for approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Approval {
    Manual,
    Auto,
}

/// What happens to granted privileges when the policy is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DeletionPolicy {
    /// The database stays as it is.
    #[default]
    Retain,
    /// If a plan of the policy was applied, the operator revokes what this policy declares and no other one does. Roles and
    /// schemas stay.
    Revoke,
}

/// The source of shared profiles.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProfilesFrom {
    /// A key of a `ConfigMap` in the same namespace. The value is YAML: a map of profiles by name.
    pub config_map_key_ref: ConfigMapKey,
}

/// A key of a `ConfigMap`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigMapKey {
    /// Name of the `ConfigMap`.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Key in the `ConfigMap`.
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
}
