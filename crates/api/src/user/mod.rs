//! `PostgresUser`: a role, its password, its privileges, and a clean goodbye.

mod credentials;
mod databases;
mod lifecycle;
mod password;
mod role;
mod status;

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use credentials::{CredentialsSecret, KeySet, SecretType};
pub use databases::{CreateDatabase, Database, DatabaseDeletion, Privilege, Schema};
pub use lifecycle::{
    DeletionPolicy, DriftMode, DriftPolicy, ExistingRolePolicy, Mode, OnDelete, OwnedObjects,
};
pub use password::{Auth, Encoding, Generate, Iam, IamProvider, Password, Rotation, RotationStrategy};
pub use role::{Membership, MembershipPolicy, Role};
pub use status::{
    AppliedDatabase, AppliedGrant, DriftStatus, GrantKind, PasswordStatus, Phase, PlanStatus,
    PostgresUserStatus,
};

/// What is said to whoever changes `spec.instanceRef`.
pub const INSTANCE_IS_IMMUTABLE: &str = "instanceRef is immutable after creation: the role would be left behind on the old \
    server. To move it, delete the object (deletionPolicy: Retain keeps the role there) and create it anew";

/// The finalizer of a `PostgresUser`.
pub const FINALIZER: &str = "db.example.com/postgresuser";

/// Annotations that a user sets and the controller only reads.
pub mod annotation {
    /// Any new value makes the controller look at once.
    pub const RECONCILE_AT: &str = "db.example.com/reconcile-at";
    /// A new RFC 3339 time makes the controller rotate a generated password.
    pub const ROTATE_AT: &str = "db.example.com/rotate-at";
    /// `"true"` on an object that is being deleted gives the role up without touching the database.
    pub const FORCE_RELEASE: &str = "db.example.com/force-release";
}

/// Condition types of a `PostgresUser`.
pub mod condition {
    /// The role is as the spec says.
    pub const READY: &str = "Ready";
    /// A query came back.
    pub const DATABASE_CONNECTED: &str = "DatabaseConnected";
    /// The role's password is the one that it should be.
    pub const PASSWORD_SYNCED: &str = "PasswordSynced";
    /// The role's privileges are those that it should have.
    pub const PRIVILEGES_SYNCED: &str = "PrivilegesSynced";
    /// Something was changed by hand since the last look.
    pub const DRIFTED: &str = "Drifted";
}

/// The role of one user on one PostgreSQL server.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "db.example.com",
    version = "v1alpha1",
    kind = "PostgresUser",
    plural = "postgresusers",
    singular = "postgresuser",
    shortname = "pguser",
    category = "postgres",
    namespaced,
    status = "PostgresUserStatus",
    derive = "PartialEq",
    doc = "A PostgreSQL role with its password and privileges; deleting the object removes the role.",
    printcolumn(name = "Username", type_ = "string", json_path = ".spec.username"),
    printcolumn(name = "Database", type_ = "string", json_path = ".spec.database"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    ),
    printcolumn(
        name = "Connected",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"DatabaseConnected\")].status"
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = ".status.message",
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[x_kube(
    validation = Rule::new("(has(self.passwordSecretRef)?1:0) + (has(self.password) && has(self.password.generate)?1:0) + (has(self.password) && has(self.password.disabled) && self.password.disabled?1:0) + (has(self.auth) && has(self.auth.iam)?1:0) == 1")
        .message("exactly one of passwordSecretRef, password.generate, password.disabled, auth.iam is required"),
    validation = Rule::new("!has(self.password) || !has(self.password.rotation) || has(self.password.generate)")
        .message("password.rotation needs password.generate (rotate a user-supplied Secret by changing the Secret)"),
    validation = Rule::new("has(self.instanceRef) == has(oldSelf.instanceRef) && (!has(self.instanceRef) || self.instanceRef == oldSelf.instanceRef)")
        .message(INSTANCE_IS_IMMUTABLE),
)]
#[serde(rename_all = "camelCase")]
pub struct PostgresUserSpec {
    /// The role's name. It cannot change: that would be another role.
    #[schemars(length(min = 1, max = 63))]
    #[x_kube(
        validation = Rule::new("self == oldSelf")
            .message(Message::Expression("\"username is immutable after creation (old: \" + oldSelf + \", new: \" + self + \")\"".into())),
        validation = Rule::new("!self.contains(\"-\")").message("username cannot contain hyphens: postgres rejects it"),
        validation = Rule::new("self.matches(\"^[a-z_][a-z0-9_$-]*$\")").message("username must be lower-case ASCII: ^[a-z_][a-z0-9_$]*$"),
        validation = Rule::new("!self.startsWith(\"pg_\") && !(self in [\"public\",\"none\",\"postgres\"])").message("username is reserved by postgres"),
    )]
    pub username: String,
    /// The database that `privileges` are about.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[A-Za-z_][A-Za-z0-9_$-]*$"))]
    pub database: String,
    /// Database words (CONNECT …) are granted on the database; table words (SELECT …) and the bundles READ,
    /// WRITE and OWNER on what is in its schema `public`.
    #[serde(default = "default_privileges")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub privileges: Vec<Privilege>,
    /// A Secret of the same namespace that holds the password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_secret_ref: Option<SecretKeyRef>,
    /// The server; without it, the operator's default one. It cannot change: the role would be left behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_ref: Option<InstanceRef>,
    /// Where the password comes from, other than a Secret of yours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<Password>,
    /// How the role logs in, other than with a password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,
    /// Attributes of the role; what is not stated is left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Roles that this one is a member of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["role".into()]))]
    pub member_of: Vec<Membership>,
    /// Whether memberships that are not listed are taken away.
    #[serde(default)]
    pub membership_policy: MembershipPolicy,
    /// More databases, and privileges inside schemas.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub databases: Vec<Database>,
    /// Makes `database` when it is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub create_database: Option<CreateDatabase>,
    /// A Secret that the operator writes for the application.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_secret: Option<CredentialsSecret>,
    /// What to do when the role exists already and no object made it. The instance must open it for adoption.
    #[serde(default)]
    pub existing_role_policy: ExistingRolePolicy,
    /// What becomes of the role when this object is deleted.
    #[serde(default)]
    pub deletion_policy: DeletionPolicy,
    /// What becomes of what the role owns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_delete: Option<OnDelete>,
    /// What to do about changes by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift_policy: Option<DriftPolicy>,
    /// Leaves role and status as they are; a deletion is still honoured.
    #[serde(default)]
    pub suspend: bool,
    /// `Plan` shows the statements in `status.plan` and runs none.
    #[serde(default)]
    pub mode: Mode,
}

fn default_privileges() -> Vec<Privilege> {
    vec![Privilege::Connect]
}

/// A key of a Secret in the object's namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretKeyRef {
    /// Name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Key in it.
    #[serde(default = "default_password_key")]
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
}

fn default_password_key() -> String {
    "password".into()
}

/// A server by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstanceRef {
    /// Name of the `PostgresInstance`.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Its namespace; the object's own by default. The instance must allow this namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub namespace: Option<String>,
    /// Its kind.
    #[serde(default)]
    pub kind: InstanceKind,
}

impl InstanceRef {
    /// The same, as an object of this namespace means it.
    #[must_use]
    pub fn seen_from(&self, namespace: &str) -> Self {
        Self {
            namespace: Some(self.namespace.clone().unwrap_or_else(|| namespace.to_owned())),
            ..self.clone()
        }
    }
}

/// Kinds that name a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum InstanceKind {
    #[default]
    #[allow(missing_docs)]
    PostgresInstance,
}
