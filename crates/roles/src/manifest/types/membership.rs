//! Memberships in roles.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::is_default;

/// The members of a role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Membership {
    /// The role that has members.
    pub role: String,
    /// The members of the role.
    pub members: Vec<Member>,
    /// Removes other members of a predefined or external role. Other members of declared roles are always removed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub exclusive: bool,
}

/// A member of a role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Member {
    /// Name of the member. The manifest need not declare it.
    pub name: String,
    /// Whether the member has the role's privileges without SET ROLE (PostgreSQL 16 and newer). Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inherit: Option<bool>,
    /// Whether the member may add and remove members. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admin: Option<bool>,
    /// Whether the member may SET ROLE (PostgreSQL 16 and newer). If unset, the option is not compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<bool>,
}
