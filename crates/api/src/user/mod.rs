//! `PostgresUser`: a PostgreSQL role with its password and privileges, and its removal.

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

/// The error for a change of `spec.instanceRef`.
pub const INSTANCE_IS_IMMUTABLE: &str = "instanceRef is immutable after creation: the role would be left behind on the old \
    server. To move it, delete the object (deletionPolicy: Retain keeps the role there) and create it anew";

/// The error for a schema of the server or of the operator.
pub const CLOSED_SCHEMAS: &str = "the schemas pg_*, information_schema and _stanchion belong to the server and to the operator, so no role \
    gets anything in them";

/// The finalizer of a `PostgresUser`.
pub const FINALIZER: &str = "db.example.com/postgresuser";

/// Annotations that a user sets and the operator only reads.
pub mod annotation {
    /// Any new value triggers a reconcile.
    pub const RECONCILE_AT: &str = "db.example.com/reconcile-at";
    /// A new RFC 3339 time triggers a rotation of a generated password.
    pub const ROTATE_AT: &str = "db.example.com/rotate-at";
    /// `"true"` on an object that is being deleted releases the object without touching the database.
    pub const FORCE_RELEASE: &str = "db.example.com/force-release";
}

/// Condition types of a `PostgresUser`.
pub mod condition {
    /// The role matches the spec.
    pub const READY: &str = "Ready";
    /// The operator ran a query on the database.
    pub const DATABASE_CONNECTED: &str = "DatabaseConnected";
    /// The role has the password that the spec asks for.
    pub const PASSWORD_SYNCED: &str = "PasswordSynced";
    /// The role has the privileges that the spec asks for.
    pub const PRIVILEGES_SYNCED: &str = "PrivilegesSynced";
    /// The role was changed outside of the operator.
    pub const DRIFTED: &str = "Drifted";
}

/// A role on a PostgreSQL server.
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
    /// Name of the role. Immutable: another name would be another role.
    #[schemars(length(min = 1, max = 63))]
    #[x_kube(
        validation = Rule::new("self == oldSelf")
            .message(Message::Expression("\"username is immutable after creation (old: \" + oldSelf + \", new: \" + self + \")\"".into())),
        validation = Rule::new("!self.contains(\"-\")").message("username cannot contain hyphens: postgres rejects it"),
        validation = Rule::new("self.matches(\"^[a-z_][a-z0-9_$-]*$\")").message("username must be lower-case ASCII: ^[a-z_][a-z0-9_$]*$"),
        validation = Rule::new("!self.startsWith(\"pg_\") && !(self in [\"public\",\"none\",\"postgres\"])").message("username is reserved by postgres"),
    )]
    pub username: String,
    /// The database that `privileges` apply to.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[A-Za-z_][A-Za-z0-9_$-]*$"))]
    pub database: String,
    /// Database privileges (CONNECT …) apply to the database. Table privileges (SELECT …) and the groups READ, WRITE
    /// and OWNER apply to its schema `public`.
    #[serde(default = "default_privileges")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub privileges: Vec<Privilege>,
    /// A Secret in the same namespace with the password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_secret_ref: Option<SecretKeyRef>,
    /// The server. Defaults to the operator's default server. Immutable: the role would stay on the old server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_ref: Option<InstanceRef>,
    /// Options for generated passwords, and for roles without a password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<Password>,
    /// Login methods other than passwords.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,
    /// Attributes of the role. The operator does not change attributes that are unset, except powers that the instance does
    /// not allow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Roles that this role is a member of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["role".into()]))]
    pub member_of: Vec<Membership>,
    /// `Authoritative` removes memberships that are not listed, `Additive` keeps them.
    #[serde(default)]
    pub membership_policy: MembershipPolicy,
    /// Additional databases, and privileges in schemas.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub databases: Vec<Database>,
    /// Creates `database` if it does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub create_database: Option<CreateDatabase>,
    /// A Secret with credentials that the operator writes for applications.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_secret: Option<CredentialsSecret>,
    /// What to do if the role exists already and no object created it. Adoption also needs the permission of the
    /// instance.
    #[serde(default)]
    pub existing_role_policy: ExistingRolePolicy,
    /// What happens to the role when the object is deleted: `Delete` drops it, `Disable` keeps it without login,
    /// `Retain` keeps it as it is.
    #[serde(default)]
    pub deletion_policy: DeletionPolicy,
    /// What happens to the objects that the role owns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_delete: Option<OnDelete>,
    /// What to do about changes that were made outside of the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift_policy: Option<DriftPolicy>,
    /// Stops reconciliation. Deletion of the object still works.
    #[serde(default)]
    pub suspend: bool,
    /// `Plan` shows the statements in `status.plan` and does not run them.
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
    /// Key in the Secret.
    #[serde(default = "default_password_key")]
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
}

fn default_password_key() -> String {
    "password".into()
}

/// A reference to a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstanceRef {
    /// Name of the `PostgresInstance`.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Namespace of the instance. Defaults to the object's own. The instance must allow the object's namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub namespace: Option<String>,
    /// Kind of the reference.
    #[serde(default)]
    pub kind: InstanceKind,
}

impl InstanceRef {
    /// This reference with its namespace filled in, for an object in `namespace`.
    #[must_use]
    pub fn seen_from(&self, namespace: &str) -> Self {
        Self {
            namespace: Some(self.namespace.clone().unwrap_or_else(|| namespace.to_owned())),
            ..self.clone()
        }
    }
}

/// Kinds that describe a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum InstanceKind {
    #[default]
    #[allow(missing_docs)]
    PostgresInstance,
}
