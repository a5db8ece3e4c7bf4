//! The Secret with credentials for an application.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A Secret with everything that an application needs to connect. The `PostgresUser` owns it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct CredentialsSecret {
    /// Name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Type of the Secret.
    #[serde(default, rename = "type")]
    pub type_: SecretType,
    /// Labels for the Secret.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64, "additionalProperties" = {"type": "string", "maxLength": 63}))]
    pub labels: BTreeMap<String, String>,
    /// Annotations for the Secret.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64, "additionalProperties" = {"type": "string", "maxLength": 4096}))]
    pub annotations: BTreeMap<String, String>,
    /// Formats to write, in addition to user name, password, host, port and database.
    #[serde(default = "default_keys")]
    #[schemars(length(max = 8))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub keys: Vec<KeySet>,
    /// Additional keys, each a template: `{{ .Username }}`, `{{ .Password | urlquery }}`, `{{ .Host }}`, `{{ .Port }}`,
    /// `{{ .Database }}`, `{{ .SSLMode }}`, `{{ .Params }}`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64, "additionalProperties" = {"type": "string", "maxLength": 4096}))]
    pub template: BTreeMap<String, String>,
    /// Connection parameters in the URIs, for instance `application_name`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32, "additionalProperties" = {"type": "string", "maxLength": 256}))]
    pub params: BTreeMap<String, String>,
}

fn default_keys() -> Vec<KeySet> {
    vec![KeySet::Libpq, KeySet::Uri, KeySet::Jdbc]
}

/// A format of the credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum KeySet {
    Libpq,
    Uri,
    Jdbc,
    Dotnet,
    Pgpass,
    Pooler,
    Replica,
}

/// Type of the Secret.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum SecretType {
    #[default]
    Opaque,
    #[serde(rename = "kubernetes.io/basic-auth")]
    BasicAuth,
}
