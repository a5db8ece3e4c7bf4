//! `PostgresInstance`: a PostgreSQL server, and who may have roles on it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::set_of_names;
use crate::status::impl_status;
use crate::user::Privilege;

/// Condition type: a query came back.
pub const CONNECTED: &str = "Connected";

/// A PostgreSQL server.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "db.example.com",
    version = "v1alpha1",
    kind = "PostgresInstance",
    plural = "postgresinstances",
    singular = "postgresinstance",
    shortname = "pginstance",
    category = "postgres",
    namespaced,
    status = "PostgresInstanceStatus",
    derive = "PartialEq",
    doc = "A PostgreSQL server, and who may have roles on it.",
    printcolumn(name = "Host", type_ = "string", json_path = ".spec.host"),
    printcolumn(
        name = "Connected",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Connected\")].status"
    ),
    printcolumn(name = "Version", type_ = "string", json_path = ".status.version"),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = ".status.message",
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct PostgresInstanceSpec {
    /// Host name or address.
    #[schemars(length(min = 1, max = 253))]
    pub host: String,
    /// Port.
    #[serde(default = "default_port")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: u16,
    /// The database that the operator connects to first.
    #[serde(default = "default_database")]
    #[schemars(length(min = 1, max = 63))]
    pub database: String,
    /// How far the server is trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// The Secret with the administrator's name and password.
    pub admin_secret_ref: AdminSecretRef,
    /// Which namespaces may use this server; only its own by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_namespaces: Option<AllowedNamespaces>,
    /// Role attributes that may be asked for; none of these by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub allowed_attributes: Vec<Attribute>,
    /// Databases that no object made, and that other allowed namespaces may use; none by default. The instance's own
    /// namespace may use them all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub databases: Vec<OpenDatabases>,
    /// Roles that no object made, and that other allowed namespaces may be members of, or reassign to; none by default.
    /// A predefined role (`pg_…`) and a role of a cloud provider is open to nobody unless it stands here by its name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub roles: Vec<OpenRoles>,
    /// Roles that no object made, and that `existingRolePolicy: Adopt` may take over; none by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adoption: Option<Adoption>,
    /// Extensions that may be made although PostgreSQL does not mark them as trusted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "set_of_names")]
    pub extensions: Vec<String>,
    /// Parameters that a role may have beside those that every user may set, for instance `app.tenant`; a `*` at the
    /// end stands for any rest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "set_of_names")]
    pub parameters: Vec<String>,
    /// How many connections the operator opens to this server.
    #[serde(default = "default_connections")]
    #[schemars(range(min = 1, max = 100))]
    pub max_connections: u32,
    /// Addresses for applications, where they differ from the operator's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<Endpoints>,
}

fn default_port() -> u16 {
    5432
}

fn default_database() -> String {
    "postgres".into()
}

fn default_connections() -> u32 {
    4
}

/// Databases that other namespaces may use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenDatabases {
    /// Their names; a `*` stands for any characters.
    #[schemars(length(min = 1, max = 64), inner(length(min = 1, max = 63)))]
    pub names: Vec<String>,
    /// The namespaces that may use them; every allowed one by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 63)))]
    pub namespaces: Vec<String>,
    /// What a role may be given there at most, in the words of `PostgresUser`. A role never becomes the owner.
    #[serde(default = "connect")]
    #[schemars(length(min = 1, max = 16))]
    pub privileges: Vec<Privilege>,
}

fn connect() -> Vec<Privilege> {
    vec![Privilege::Connect]
}

/// Roles that other namespaces may use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenRoles {
    /// Their names; a `*` stands for any characters.
    #[schemars(length(min = 1, max = 64), inner(length(min = 1, max = 63)))]
    pub names: Vec<String>,
    /// The namespaces that may use them; every allowed one by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 63)))]
    pub namespaces: Vec<String>,
}

/// Roles that an object may take over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Adoption {
    /// Their names; a `*` stands for any characters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 63)))]
    pub roles: Vec<String>,
    /// The namespaces whose objects may; every allowed one by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 63)))]
    pub namespaces: Vec<String>,
}

/// TLS towards the server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tls {
    /// As libpq's `sslmode`.
    #[serde(default)]
    pub mode: TlsMode,
    /// The certificate authority that signed the server's certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_secret_ref: Option<CaSecretRef>,
}

/// libpq's `sslmode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum TlsMode {
    Disable,
    #[default]
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

/// A key with a PEM certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CaSecretRef {
    /// Name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Key in it.
    #[serde(default = "default_ca_key")]
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
}

fn default_ca_key() -> String {
    "ca.crt".into()
}

/// The administrator's credentials.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdminSecretRef {
    /// Name of the Secret, in the instance's namespace.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Key of the user name.
    #[serde(default = "default_username_key")]
    #[schemars(length(min = 1, max = 253))]
    pub username_key: String,
    /// Key of the password.
    #[serde(default = "default_password_key")]
    #[schemars(length(min = 1, max = 253))]
    pub password_key: String,
}

fn default_username_key() -> String {
    "username".into()
}

fn default_password_key() -> String {
    "password".into()
}

/// Namespaces, by name or by label.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct AllowedNamespaces {
    /// Names; `*` for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub names: Vec<String>,
    /// Labels of the namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
}

/// Attributes that make a role powerful.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum Attribute {
    #[serde(rename = "superuser")]
    Superuser,
    #[serde(rename = "replication")]
    Replication,
    #[serde(rename = "bypassRLS")]
    BypassRls,
    #[serde(rename = "createRole")]
    CreateRole,
}

/// Addresses for applications.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Endpoints {
    /// What applications use instead of `host` and `port`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary: Option<Endpoint>,
    /// A connection pooler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pooler: Option<Endpoint>,
    /// A read-only replica.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica: Option<Endpoint>,
}

/// One address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Endpoint {
    /// Host name or address.
    #[schemars(length(min = 1, max = 253))]
    pub host: String,
    /// Port.
    #[serde(default = "default_port")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: u16,
}

/// Status of a `PostgresInstance`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct PostgresInstanceStatus {
    /// The generation of the spec that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// One sentence for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The server's version, for instance `15.18`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The server's own identity: two instances with one identifier are one server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_identifier: Option<String>,
    /// The conditions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

impl_status!(PostgresInstanceStatus);
