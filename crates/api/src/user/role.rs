//! Attributes, parameters and memberships of a role.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::password::yes;
use crate::moment;

/// Attributes of the role. The operator does not change attributes that are unset, except powers that the instance does not
/// allow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Role {
    /// LOGIN: whether the role may log in.
    #[serde(default = "yes")]
    pub login: bool,
    /// INHERIT: whether the role has the privileges of the roles that it is a member of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inherit: Option<bool>,
    /// CREATEDB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub create_database: Option<bool>,
    /// CREATEROLE; the instance must allow it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub create_role: Option<bool>,
    /// REPLICATION; the instance must allow it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replication: Option<bool>,
    /// BYPASSRLS; the instance must allow it.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "bypassRLS")]
    pub bypass_rls: Option<bool>,
    /// SUPERUSER; the instance must allow it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superuser: Option<bool>,
    /// CONNECTION LIMIT: maximum number of concurrent connections. -1 means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -1))]
    pub connection_limit: Option<i32>,
    /// VALID UNTIL: the password does not work after this time. Times after 9999-12-30T22:00:00Z are cut to it.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "moment::optional"
    )]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub valid_until: Option<Timestamp>,
    /// Comment on the role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub comment: Option<String>,
    /// Session parameters of the role. The value of `search_path` and similar parameters may be a list.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32, "additionalProperties" = {"type": "string", "maxLength": 1024}))]
    pub parameters: BTreeMap<String, String>,
}

impl Default for Role {
    fn default() -> Self {
        Self {
            login: true,
            inherit: None,
            create_database: None,
            create_role: None,
            replication: None,
            bypass_rls: None,
            superuser: None,
            connection_limit: None,
            valid_until: None,
            comment: None,
            parameters: BTreeMap::new(),
        }
    }
}

/// One membership.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Membership {
    /// The role to become a member of.
    #[schemars(length(min = 1, max = 63))]
    pub role: String,
    /// Whether the role may grant the membership to others.
    #[serde(default)]
    pub admin: bool,
    /// Whether the role has the privileges without SET ROLE (PostgreSQL 16 and later; before, an attribute of the
    /// member).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inherit: Option<bool>,
    /// Whether the role may SET ROLE to it (PostgreSQL 16 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<bool>,
}

/// What happens to memberships that are not listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum MembershipPolicy {
    #[default]
    Additive,
    Authoritative,
}
