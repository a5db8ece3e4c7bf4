//! How a policy gets to its database.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The database, and who connects to it: by a URL in a Secret, or part by part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Connection {
    /// A Secret of the same namespace with a connection URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretName>,
    /// The key of the URL. Default: `DATABASE_URL`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_key: Option<String>,
    /// The same, part by part. Either this or `secretRef`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Params>,
    /// The certificate authority that signed the server's certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_secret: Option<CaSecret>,
    /// Refuses a server that does not say which one it is: two roads to one database could not be told from two
    /// databases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub require_physical_identity: Option<bool>,
}

/// A Secret of the same namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecretName {
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// A key of a Secret of the same namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecretKey {
    /// Name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Key in it.
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
}

/// A key with PEM certificates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CaSecret {
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

/// A connection, part by part. Each part is written here or kept in a Secret.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Params {
    /// Host name or address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The same, from a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_secret: Option<SecretKey>,
    /// Port. Default: 5432.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The same, from a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port_secret: Option<SecretKey>,
    /// Database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dbname: Option<String>,
    /// The same, from a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dbname_secret: Option<SecretKey>,
    /// The role that logs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// The same, from a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username_secret: Option<SecretKey>,
    /// Its password, for everybody to see who may read the policy: better `passwordSecret`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// The same, from a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_secret: Option<SecretKey>,
    /// As libpq's `sslmode`. Default: `prefer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssl_mode: Option<String>,
    /// The same, from a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssl_mode_secret: Option<SecretKey>,
    /// Does all work as this role: `SET ROLE` right after connecting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[A-Za-z_][A-Za-z0-9_$-]*$"))]
    pub set_role: Option<String>,
    /// Logs in with a token of the cloud instead of a password. This operator has no such tokens yet: a policy that
    /// asks for one is told so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,
}

/// A login with a token of the cloud.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.type == 'gcp_workload_identity' || (!has(self.scope) && !has(self.impersonateServiceAccount))")
        .message("scope and impersonateServiceAccount are for gcp_workload_identity"),
)]
pub struct Auth {
    /// Whose token.
    #[serde(rename = "type")]
    pub kind: AuthType,
    /// What the token is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// In whose name it is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impersonate_service_account: Option<String>,
}

/// The clouds that give tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum AuthType {
    GcpWorkloadIdentity,
    AzureWorkloadIdentity,
}

impl AuthType {
    /// As it is written in a policy.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::GcpWorkloadIdentity => "gcp_workload_identity",
            Self::AzureWorkloadIdentity => "azure_workload_identity",
        }
    }
}
