//! The external services that a project needs: PostgreSQL and S3.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::instance::{CaSecretRef, TlsMode};

/// A Secret in the project's namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct SecretReference {
    /// Name of the Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub name: Option<String>,
    /// The project's own namespace, or unset: pods cannot read Secrets in other namespaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub namespace: Option<String>,
}

/// The PostgreSQL server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "has(self.secretRef.name) && size(self.secretRef.name) > 0",
    "database.secretRef.name cannot be empty"
))]
pub struct Database {
    /// The Secret with `host`, `port`, `database`, `username` and `password` of an administrator. Only the operator
    /// uses these credentials: each component logs in with a role of its own.
    pub secret_ref: SecretReference,
    /// TLS mode of the operator and all components, with the meaning of libpq's `sslmode`.
    #[serde(default = "require")]
    pub ssl_mode: TlsMode,
    /// The CA certificate that signed the server's certificate. Without it, `verify-ca` and `verify-full` use the CA
    /// certificates of the operator's system and of each component's image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_secret_ref: Option<CaSecretRef>,
    /// Maximum number of database connections of each component.
    #[serde(default = "twenty")]
    #[schemars(range(min = 1, max = 100))]
    pub max_connections: u32,
}

fn require() -> TlsMode {
    TlsMode::Require
}

fn twenty() -> u32 {
    20
}

/// The S3 bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "has(self.secretRef.name) && size(self.secretRef.name) > 0",
    "storage.secretRef.name cannot be empty"
))]
pub struct Storage {
    /// The Secret with `endpoint`, `region`, `bucket`, `accessKeyId` and `secretAccessKey`.
    pub secret_ref: SecretReference,
    /// Whether the bucket is part of the path (`MinIO` and most other servers) or of the host name (AWS).
    #[serde(default = "yes")]
    pub force_path_style: bool,
}

fn yes() -> bool {
    true
}
