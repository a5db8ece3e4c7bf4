//! `PostgresInstance`: a PostgreSQL server, and the limits on what `PostgresUser` objects may do there.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::set_of_names;
use crate::status::impl_status;
use crate::user::Privilege;

/// Condition type: the operator ran a query on the server.
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
    doc = "A PostgreSQL server, and the limits on what PostgresUsers may do there.",
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
    /// Host name or IP address of the server.
    #[schemars(length(min = 1, max = 253))]
    pub host: String,
    /// Port of the server.
    #[serde(default = "default_port")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: u16,
    /// The database that the operator connects to first.
    #[serde(default = "default_database")]
    #[schemars(length(min = 1, max = 63))]
    pub database: String,
    /// TLS options of the operator's connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// The Secret with the administrator's user name and password.
    pub admin_secret_ref: AdminSecretRef,
    /// Namespaces whose objects may use this server. Defaults to the instance's own namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_namespaces: Option<AllowedNamespaces>,
    /// Role attributes that objects may request. Defaults to none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub allowed_attributes: Vec<Attribute>,
    /// Existing databases that objects in other allowed namespaces may use. Defaults to none. The instance's own
    /// namespace may use all databases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub databases: Vec<OpenDatabases>,
    /// Existing roles that objects in other allowed namespaces may become members of or reassign to. Defaults to none.
    /// A predefined role (`pg_…`) or a role of a cloud provider is available only if it is listed here by its exact
    /// name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub roles: Vec<OpenRoles>,
    /// Existing roles that `existingRolePolicy: Adopt` may adopt. Defaults to none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adoption: Option<Adoption>,
    /// Extensions that objects may create although PostgreSQL does not mark them as trusted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "set_of_names")]
    pub extensions: Vec<String>,
    /// Parameters that objects may set on a role in addition to those that every user may set, for instance
    /// `app.tenant`. A trailing `*` matches any suffix.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "set_of_names")]
    pub parameters: Vec<String>,
    /// Maximum number of connections that the operator opens to this server.
    #[serde(default = "default_connections")]
    #[schemars(range(min = 1, max = 100))]
    pub max_connections: u32,
    /// Addresses for applications, if they differ from the operator's.
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

/// Existing databases that other namespaces may use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenDatabases {
    /// Names of databases. `*` matches any characters.
    #[schemars(length(min = 1, max = 64), inner(length(min = 1, max = 63)))]
    pub names: Vec<String>,
    /// Namespaces whose objects may use these databases. Defaults to all allowed namespaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 63)))]
    pub namespaces: Vec<String>,
    /// The most that a role may be granted there, in the terms of `PostgresUser`. A role never becomes the owner.
    #[serde(default = "connect")]
    #[schemars(length(min = 1, max = 16))]
    pub privileges: Vec<Privilege>,
}

fn connect() -> Vec<Privilege> {
    vec![Privilege::Connect]
}

/// Existing roles that other namespaces may use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenRoles {
    /// Names of roles. `*` matches any characters.
    #[schemars(length(min = 1, max = 64), inner(length(min = 1, max = 63)))]
    pub names: Vec<String>,
    /// Namespaces whose objects may use these roles. Defaults to all allowed namespaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 63)))]
    pub namespaces: Vec<String>,
}

/// Existing roles that objects may adopt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Adoption {
    /// Names of roles. `*` matches any characters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 63)))]
    pub roles: Vec<String>,
    /// Namespaces whose objects may adopt these roles. Defaults to all allowed namespaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 63)))]
    pub namespaces: Vec<String>,
}

/// TLS options of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tls {
    /// TLS mode, with the meaning of libpq's `sslmode`. Only `verify-ca` and `verify-full` verify the server.
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

/// A key of a Secret with a PEM certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CaSecretRef {
    /// Name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Key in the Secret.
    #[serde(default = "default_ca_key")]
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
}

fn default_ca_key() -> String {
    "ca.crt".into()
}

/// The Secret with the administrator's credentials.
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

/// Namespaces, selected by name or by label.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct AllowedNamespaces {
    /// Names of namespaces. `*` selects all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub names: Vec<String>,
    /// Selects namespaces by their labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
}

/// Privileged role attributes.
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
    /// The address that applications use instead of `host` and `port`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary: Option<Endpoint>,
    /// Address of a connection pooler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pooler: Option<Endpoint>,
    /// Address of a read-only replica.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica: Option<Endpoint>,
}

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Endpoint {
    /// Host name or IP address.
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
    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The state of the instance in one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The server's version, for instance `15.18`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The server's system identifier. Two instances with the same identifier are the same server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_identifier: Option<String>,
    /// The state of the instance, as Kubernetes conditions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

impl_status!(PostgresInstanceStatus);
