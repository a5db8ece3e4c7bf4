//! The connection of a policy to its database.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stanchion_manifest::SecretName;

/// The database and the login: a URL in a Secret, or separate parameters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Connection {
    /// A Secret in the same namespace with a connection URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretName>,
    /// Key of the URL in the Secret. Default: `DATABASE_URL`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_key: Option<String>,
    /// Separate connection parameters. Set either this or `secretRef`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Params>,
    /// The CA certificate that signed the server's certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_secret: Option<CaSecret>,
    /// Refuses a server that does not report its system identifier. Without the identifier, two addresses of one
    /// database look like two databases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub require_physical_identity: Option<bool>,
}

/// A key of a Secret in the same namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecretKey {
    /// Name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Key in the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
}

/// A key of a Secret with PEM certificates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CaSecret {
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

/// Connection parameters. Each one is set here or read from a Secret.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Params {
    /// Host name or IP address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// `host`, read from a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_secret: Option<SecretKey>,
    /// Port. Default: 5432.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// `port`, read from a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port_secret: Option<SecretKey>,
    /// Name of the database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dbname: Option<String>,
    /// `dbname`, read from a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dbname_secret: Option<SecretKey>,
    /// The role that logs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// `username`, read from a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username_secret: Option<SecretKey>,
    /// Password of the role. Anyone who can read the policy can read it: prefer `passwordSecret`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// `password`, read from a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_secret: Option<SecretKey>,
    /// TLS mode, with the meaning of libpq's `sslmode`. Default: `prefer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssl_mode: Option<String>,
    /// `sslMode`, read from a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssl_mode_secret: Option<SecretKey>,
    /// Runs `SET ROLE` with this role right after connecting. All work is done as this role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[A-Za-z_][A-Za-z0-9_$-]*$"))]
    pub set_role: Option<String>,
    /// Login with a cloud token instead of a password. Not supported yet: a policy that sets it reports an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,
}

/// Login with a cloud token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.type == 'gcp_workload_identity' || (!has(self.scope) && !has(self.impersonateServiceAccount))")
        .message("scope and impersonateServiceAccount are for gcp_workload_identity"),
)]
pub struct Auth {
    /// The cloud service that issues the token.
    #[serde(rename = "type")]
    pub kind: AuthType,
    /// Scope of the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// The service account to impersonate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impersonate_service_account: Option<String>,
}

/// Cloud services that issue tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum AuthType {
    GcpWorkloadIdentity,
    AzureWorkloadIdentity,
}

impl AuthType {
    /// The value in the spec.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::GcpWorkloadIdentity => "gcp_workload_identity",
            Self::AzureWorkloadIdentity => "azure_workload_identity",
        }
    }
}
