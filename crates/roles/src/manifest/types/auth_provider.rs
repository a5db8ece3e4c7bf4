//! Where logins come from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A source of logins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuthProvider {
    /// Which one.
    #[serde(rename = "type")]
    pub kind: AuthProviderType,
    /// Cloud SQL, `AlloyDB`: the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// `AlloyDB`: the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// RDS: the region.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Azure AD: the tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
    /// Supabase: the project's reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_ref: Option<String>,
    /// `PlanetScale`: the organization.
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
