//! The desired state.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::manifest::{Password, Retirement};
use crate::model::{ObjectType, Privileges, RoleState};

/// What must hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Desired {
    /// Declared and generated roles.
    pub roles: BTreeMap<String, DesiredRole>,
    /// Declared schemas and, where one is said, their owners.
    pub schemas: BTreeMap<String, Option<String>>,
    /// Privileges on objects.
    pub grants: BTreeMap<GrantKey, Rule>,
    /// Privileges on objects to come.
    pub default_privileges: BTreeMap<DefaultKey, Rule>,
    /// Members, by role.
    pub memberships: BTreeMap<String, Membership>,
    /// Roles to drop.
    pub retirements: Vec<Retirement>,
    /// Adopt mode may give schemas to their owners.
    pub allow_schema_owner_transfers: bool,
    /// What is looked at, and thereby revoked where it is not desired.
    pub scope: Scope,
    /// How much the manifest says, for people.
    pub counts: Counts,
}

/// A role and how it is managed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DesiredRole {
    /// Its attributes.
    pub state: RoleState,
    /// Where its password comes from.
    pub password: Option<Password>,
    /// Neither created nor altered.
    pub external: bool,
    /// Holds nothing but what is desired, anywhere in the database.
    pub exclusive: bool,
    /// Keeps privileges that are not desired.
    pub preserve_undeclared_grants: bool,
}

/// Which privileges a rule is about: a role's, on an object or on all of a kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct GrantKey {
    /// The role, or `PUBLIC`.
    pub grantee: String,
    /// Kind of object.
    pub kind: ObjectType,
    /// Its schema, if it lives in one.
    pub schema: Option<String>,
    /// Its name or `*`; `None` is the connected database.
    pub name: Option<String>,
    /// Only these columns; empty is the whole relation.
    pub columns: BTreeSet<String>,
    /// Of `*`, not these.
    pub except: BTreeSet<String>,
}

impl GrantKey {
    /// Whether all objects of the kind are meant.
    pub fn is_wildcard(&self) -> bool {
        self.name.as_deref() == Some("*")
    }
}

/// Which default privileges a rule is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DefaultKey {
    /// Whose new objects.
    pub owner: String,
    /// In which schema; `None` is everywhere.
    pub schema: Option<String>,
    /// Kind of new objects.
    pub kind: ObjectType,
    /// The role, or `PUBLIC`.
    pub grantee: String,
}

/// What a rule says of the privileges it is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rule {
    /// Must be held.
    pub present: Privileges,
    /// Must not be held.
    pub absent: Privileges,
    /// Must be held with the grant option.
    pub grantable: Privileges,
    /// Must be held without the grant option.
    pub not_grantable: Privileges,
}

/// The members of a role.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Membership {
    /// Other members are removed.
    pub exhaustive: bool,
    /// These are removed.
    pub absent: BTreeSet<String>,
    /// The members.
    pub members: BTreeMap<String, MemberOptions>,
}

/// How a member is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberOptions {
    /// Without SET ROLE.
    pub inherit: bool,
    /// May change the membership.
    pub admin: bool,
    /// May SET ROLE; `None` is not looked at.
    pub set: Option<bool>,
}

/// How much a manifest says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Counts {
    pub schemas: usize,
    pub roles: usize,
    pub grants: usize,
    pub default_privileges: usize,
    pub memberships: usize,
}

/// What is managed: inside of it, what is not desired is revoked; outside, nothing is touched.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    /// Roles whose privileges are managed.
    pub roles: BTreeSet<String>,
    /// Schemas, and what of them is managed.
    pub schemas: BTreeMap<String, ScopedSchema>,
    /// Whether privileges on the database are managed.
    pub database: bool,
}

/// What of a schema is managed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScopedSchema {
    /// Its existence and owner.
    pub owner: bool,
    /// Privileges on it and in it.
    pub bindings: bool,
}

impl Scope {
    /// The scope of a single manifest: all that it mentions.
    pub fn of(desired: &Desired) -> Self {
        let mut scope = Self {
            roles: desired.roles.keys().cloned().collect(),
            schemas: BTreeMap::new(),
            database: desired.grants.keys().any(|key| key.kind == ObjectType::Database),
        };
        for name in desired.schemas.keys() {
            scope.schemas.insert(
                name.clone(),
                ScopedSchema {
                    owner: true,
                    bindings: true,
                },
            );
        }
        let of_grants = desired.grants.keys().filter_map(|key| match key.kind {
            ObjectType::Schema => key.name.as_ref(),
            _ => key.schema.as_ref(),
        });
        let of_defaults = desired
            .default_privileges
            .keys()
            .filter_map(|key| key.schema.as_ref());
        for name in of_grants.chain(of_defaults) {
            scope.schemas.entry(name.clone()).or_default().bindings = true;
        }
        scope
    }

    /// Schemas whose privileges are managed.
    pub fn privilege_schemas(&self) -> impl Iterator<Item = &str> {
        self.schemas
            .iter()
            .filter(|(_, facets)| facets.bindings)
            .map(|(name, _)| name.as_str())
    }
}
