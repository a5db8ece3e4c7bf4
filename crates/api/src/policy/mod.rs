//! `PostgresPolicy` and `PostgresPolicyPlan`: roles and privileges of a database, kept as declared.
//!
//! The fields of a spec that say *what must hold* are the manifest of the role engine, word for word, so that one file
//! serves the command line and the cluster. Their names are written like the manifest's (`snake_case`); the names of
//! what is Kubernetes' own are not.

mod connection;
mod grants;
#[cfg(test)]
mod original;
mod plan;
mod roles;
mod status;

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use connection::{Auth, AuthType, CaSecret, Connection, Params, SecretKey, SecretName};
pub use grants::{
    DefaultPrivilege, DefaultPrivilegeGrant, DefaultPrivilegeScope, Ensure, Grant, Object, ObjectType,
    Privilege, Profile, ProfileGrant, ProfileObject, ScopeType,
};
pub use plan::{
    Compression, Decider, PlanPhase, PostgresPolicyPlan, PostgresPolicyPlanSpec, PostgresPolicyPlanStatus,
    SqlRef,
};
pub use roles::{
    AuthProvider, AuthProviderType, Generate, Member, Membership, Password, Retirement, Role, Schema,
};
pub use status::{ChangeSummary, PlanRef, PostgresPolicyStatus};

/// The API group of both kinds.
pub const GROUP: &str = "pgroles.io";
/// The finalizer of a `PostgresPolicy`.
pub const FINALIZER: &str = "pgroles.io/finalizer";
/// The label on plans, their `ConfigMaps` and generated Secrets: the policy's name.
pub const POLICY_LABEL: &str = "pgroles.io/policy";
/// The label on a generated Secret: the role, as far as a label can say it.
pub const ROLE_LABEL: &str = "pgroles.io/role";
/// The label on the `ConfigMap` with a plan's SQL: the plan's name.
pub const PLAN_LABEL: &str = "pgroles.io/plan";
/// The label on a plan: the database, as far as a label can say it.
pub const DATABASE_LABEL: &str = "pgroles.io/database-identity";

/// Annotations of both kinds.
pub mod annotation {
    /// On a policy: any new value makes the controller look at once.
    pub const REQUESTED_AT: &str = "reconcile.pgroles.io/requestedAt";
    /// On a plan: `"true"` approves it.
    pub const APPROVED: &str = "pgroles.io/approved";
    /// On a plan: `"true"` rejects it, whatever else is said.
    pub const REJECTED: &str = "pgroles.io/rejected";
    /// On a plan: who approved or rejected it, with a seal. The operator's webhook writes it.
    pub const DECIDED_BY: &str = "pgroles.io/decided-by";
    /// On a plan: its first lines.
    pub const SQL_PREVIEW: &str = "pgroles.io/sql-preview";
    /// On a plan: its changes in one line.
    pub const SUMMARY: &str = "pgroles.io/summary";
    /// On a plan: its identity.
    pub const SQL_HASH: &str = "pgroles.io/sql-hash";
    /// On a plan: the hash of its SQL as it is shown.
    pub const REDACTED_SQL_HASH: &str = "pgroles.io/redacted-sql-hash";
    /// On a plan: how long its SQL is.
    pub const SQL_ORIGINAL_BYTES: &str = "pgroles.io/sql-original-bytes";
    /// On a plan: how long it is as it is stored.
    pub const SQL_STORED_BYTES: &str = "pgroles.io/sql-stored-bytes";
}

/// Condition types of a `PostgresPolicy`; `Reconciling` and `Stalled` are every kind's.
pub mod condition {
    /// The last reconcile succeeded.
    pub const READY: &str = "Ready";
    /// The last reconcile failed.
    pub const DEGRADED: &str = "Degraded";
    /// The database differs from what is declared.
    pub const DRIFTED: &str = "Drifted";
    /// Another policy declares the same.
    pub const CONFLICT: &str = "Conflict";
    /// Nothing is done, because the spec says so.
    pub const PAUSED: &str = "Paused";
    /// The spec contains a password, which everybody who may read the policy can see.
    pub const PASSWORD_IN_SPEC: &str = "PasswordInSpec";
    /// The database was reached; the reason says whether the server has proven to be the right one.
    pub const CONNECTED: &str = "DatabaseConnected";
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
    doc = "Roles, privileges, default privileges and memberships of a database, kept as declared.",
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
    /// The database, and who connects to it.
    pub connection: Connection,
    /// How often to look for changes by hand: `5m`, `1h30m`, or a number of seconds.
    #[serde(default = "default_interval")]
    pub interval: String,
    /// Leaves the database and the plans as they are.
    #[serde(default)]
    pub suspend: bool,
    /// `apply` changes the database; `observe` (formerly `plan`) only says what would change.
    #[serde(default)]
    pub mode: Mode,
    /// How far changes may go.
    #[serde(default)]
    pub reconciliation_mode: ReconciliationMode,
    /// Whether a plan waits for a person. Default: `auto` in mode `apply`, `manual` otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// What becomes of what was granted when the policy is deleted.
    #[serde(default, rename = "deletionPolicy")]
    pub deletion_policy: DeletionPolicy,
    /// Profiles that several policies share; a profile of the policy's own goes first.
    #[serde(default, rename = "profilesFrom", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub profiles_from: Vec<ProfilesFrom>,
    /// How many ended plans are kept. Default: 10.
    #[serde(default, rename = "planHistoryLimit", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub plan_history_limit: Option<u32>,
    /// Owner of declared schemas and of default privileges that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub default_owner: Option<String>,
    /// How generated roles are named, unless a schema says otherwise. Default: `{schema}-{profile}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub role_pattern: Option<String>,
    /// Lets adopt mode give existing schemas to their declared owner.
    #[serde(default)]
    pub allow_schema_owner_transfers: bool,
    /// Where logins come from. For the reader; nothing is done with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub auth_providers: Vec<AuthProvider>,
    /// Templates: each profile of a schema becomes a role.
    #[serde(default)]
    #[schemars(extend("maxProperties" = 128))]
    pub profiles: BTreeMap<String, Profile>,
    /// Schemas to keep in existence, with the profiles that are bound to them.
    #[serde(default)]
    #[schemars(length(max = 1024))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub schemas: Vec<Schema>,
    /// Roles to keep in existence, with all of their attributes.
    #[serde(default)]
    #[schemars(length(max = 1024))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub roles: Vec<Role>,
    /// Privileges on objects.
    #[serde(default)]
    #[schemars(length(max = 4096))]
    pub grants: Vec<Grant>,
    /// Privileges on objects that do not exist yet.
    #[serde(default)]
    #[schemars(length(max = 512))]
    pub default_privileges: Vec<DefaultPrivilege>,
    /// Who is a member of what.
    #[serde(default)]
    #[schemars(length(max = 2048))]
    pub memberships: Vec<Membership>,
    /// Roles to drop: the only way in which a role is ever dropped.
    #[serde(default)]
    #[schemars(length(max = 512))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["role".into()]))]
    pub retirements: Vec<Retirement>,
}

fn default_interval() -> String {
    "5m".into()
}

/// Whether the database is changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// It is.
    #[default]
    Apply,
    /// It is not; plans say what would be done.
    Observe,
    /// The former name of `observe`.
    Plan,
}

impl Mode {
    /// Whether the database is changed.
    pub fn applies(self) -> bool {
        self == Self::Apply
    }
}

/// How far changes may go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReconciliationMode {
    /// What is managed becomes exactly what is declared.
    #[default]
    Authoritative,
    /// Only gives, never takes.
    Additive,
    /// As authoritative, but drops no role.
    Adopt,
}

/// Whether a plan waits for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Approval {
    Manual,
    Auto,
}

/// What becomes of what was granted when the policy is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DeletionPolicy {
    /// The database stays as it is.
    #[default]
    Retain,
    /// What only this policy granted is revoked; roles and schemas stay.
    Revoke,
}

/// Where shared profiles are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProfilesFrom {
    /// A key of a `ConfigMap` of the same namespace. Its value is YAML: profiles by their names.
    pub config_map_key_ref: ConfigMapKey,
}

/// A key of a `ConfigMap`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigMapKey {
    /// Name of the `ConfigMap`.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Key in it.
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
}
