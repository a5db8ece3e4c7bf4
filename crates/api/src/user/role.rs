//! What the role is: its attributes, its parameters, its memberships.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::password::yes;
use crate::moment;

/// Attributes of the role. What is not stated is left as it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Role {
    /// Whether the role may log in.
    #[serde(default = "yes")]
    pub login: bool,
    /// Whether it has the privileges of the roles that it is a member of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inherit: Option<bool>,
    /// CREATEDB
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
    /// How many connections at once; -1 for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -1))]
    pub connection_limit: Option<i32>,
    /// The password does not work after this time. A time after 9999-12-30T22:00:00Z means that one.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "moment::optional"
    )]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub valid_until: Option<Timestamp>,
    /// A comment for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub comment: Option<String>,
    /// Settings of the role's sessions; a value of `search_path` and the like may be a list.
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
    /// The role to be a member of.
    #[schemars(length(min = 1, max = 63))]
    pub role: String,
    /// May grant the membership on.
    #[serde(default)]
    pub admin: bool,
    /// Has the role's privileges without SET ROLE (PostgreSQL 16 and newer; before that an attribute of the member).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inherit: Option<bool>,
    /// May SET ROLE to it (PostgreSQL 16 and newer).
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
