//! Sources of logins, as documentation for readers of the manifest.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A source of logins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuthProvider {
    /// The kind of source.
    #[serde(rename = "type")]
    pub kind: AuthProviderType,
    /// Project of Cloud SQL or `AlloyDB`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Cluster of `AlloyDB`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// Region of RDS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Tenant of Azure AD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
    /// Project reference of Supabase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_ref: Option<String>,
    /// Organization of `PlanetScale`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub organization: Option<String>,
}

/// The known sources of logins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum AuthProviderType {
    CloudSqlIam,
    AlloydbIam,
    RdsIam,
    AzureAd,
    Supabase,
    PlanetScale,
}
