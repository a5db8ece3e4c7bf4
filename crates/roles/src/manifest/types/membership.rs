//! Who is a member of what.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::is_default;

/// The members of a role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Membership {
    /// The role that has members.
    pub role: String,
    /// Its members.
    pub members: Vec<Member>,
    /// For predefined and external roles: other members are removed. Declared roles are always so.
    #[serde(default, skip_serializing_if = "is_default")]
    pub exclusive: bool,
}

/// A member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Member {
    /// Its name. It need not be declared.
    pub name: String,
    /// Has the role's privileges without SET ROLE (PostgreSQL 16 and newer). Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inherit: Option<bool>,
    /// May add and remove members. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admin: Option<bool>,
    /// May SET ROLE (PostgreSQL 16 and newer). Unset: not looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<bool>,
}
