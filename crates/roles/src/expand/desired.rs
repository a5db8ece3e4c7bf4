//! The desired state.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::manifest::{Ensure, Password, Retirement};
use crate::model::{ObjectType, Privileges, RoleState};

/// The desired state of a database.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Desired {
    /// Declared and generated roles.
    pub roles: BTreeMap<String, DesiredRole>,
    /// Declared schemas and their owners, if declared.
    pub schemas: BTreeMap<String, Option<String>>,
    /// Privileges on objects.
    pub grants: BTreeMap<GrantKey, Rule>,
    /// Privileges that no rule takes away, on the objects that these rules mean.
    pub spared: BTreeMap<GrantKey, Privileges>,
    /// Privileges on future objects.
    pub default_privileges: BTreeMap<DefaultKey, Rule>,
    /// Members, by role.
    pub memberships: BTreeMap<String, Membership>,
    /// Roles to drop.
    pub retirements: Vec<Retirement>,
    /// Whether adopt mode may change the owner of schemas.
    pub allow_schema_owner_transfers: bool,
    /// What is inspected, and revoked if it is not desired.
    pub scope: Scope,
    /// Counts of the manifest, for summaries.
    pub counts: Counts,
}

impl Desired {
    /// Rebuilds the maps with full nodes.
    pub(super) fn compact(self) -> Self {
        Self {
            roles: compact(self.roles),
            schemas: compact(self.schemas),
            grants: compact(self.grants),
            default_privileges: compact(self.default_privileges),
            memberships: compact(self.memberships),
            ..self
        }
    }
}

/// The same map with full nodes. Keys that are inserted in their order leave the nodes of a map half empty.
pub(crate) fn compact<K: Ord, V>(map: BTreeMap<K, V>) -> BTreeMap<K, V> {
    map.into_iter().collect()
}

/// A role and how it is managed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DesiredRole {
    /// Its attributes.
    pub state: RoleState,
    /// The source of its password. Most roles have none, so it takes little room in the map.
    pub password: Option<Box<Password>>,
    /// Whether the role is neither created nor altered.
    pub external: bool,
    /// Whether the role holds nothing beyond the desired state, anywhere in the database.
    pub exclusive: bool,
    /// Whether the role keeps undeclared privileges.
    pub preserve_undeclared_grants: bool,
}

/// The subject of a grant rule: a role's privileges on an object or on all objects of a kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct GrantKey {
    /// The role, or `PUBLIC`.
    pub grantee: String,
    /// Kind of object.
    pub kind: ObjectType,
    /// Its schema, for kinds that are in a schema.
    pub schema: Option<String>,
    /// Its name or `*`; `None` is the connected database.
    pub name: Option<String>,
    /// Restricts the rule to these columns; empty means the whole relation.
    pub columns: BTreeSet<String>,
    /// Exceptions from `*`.
    pub except: BTreeSet<String>,
}

impl GrantKey {
    /// Whether the rule matches all objects of the kind.
    pub fn is_wildcard(&self) -> bool {
        self.name.as_deref() == Some("*")
    }
}

/// The subject of a default privilege rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DefaultKey {
    /// Owner of the future objects.
    pub owner: String,
    /// Schema of the future objects; `None` means all schemas.
    pub schema: Option<String>,
    /// Kind of the future objects.
    pub kind: ObjectType,
    /// The role, or `PUBLIC`.
    pub grantee: String,
}

/// What a rule requires of the privileges of its subject.
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

impl Rule {
    /// Adds what one grant of a manifest says.
    pub(super) fn require(&mut self, privileges: Privileges, ensure: Ensure, option: Option<bool>) {
        match ensure {
            Ensure::Absent => self.absent.add(privileges),
            Ensure::Present => {
                self.present.add(privileges);
                match option {
                    Some(true) => self.grantable.add(privileges),
                    Some(false) => self.not_grantable.add(privileges),
                    None => {}
                }
            }
        }
    }
}

/// The members of a role.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Membership {
    /// Whether other members are removed.
    pub exhaustive: bool,
    /// Members to remove.
    pub absent: BTreeSet<String>,
    /// The members.
    pub members: BTreeMap<String, MemberOptions>,
}

/// The options of a membership.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberOptions {
    /// Whether the member has the privileges without SET ROLE.
    pub inherit: bool,
    /// Whether the member may grant the membership to others.
    pub admin: bool,
    /// Whether the member may SET ROLE; `None` is not compared.
    pub set: Option<bool>,
}

/// Counts of a manifest's items.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Counts {
    pub schemas: usize,
    pub roles: usize,
    pub grants: usize,
    pub default_privileges: usize,
    pub memberships: usize,
}

/// The managed scope: within it, undeclared items are revoked; outside of it, nothing is changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    /// Roles whose privileges are managed.
    pub roles: BTreeSet<String>,
    /// Schemas, and which part of each is managed.
    pub schemas: BTreeMap<String, ScopedSchema>,
    /// Whether privileges on the database are managed.
    pub database: bool,
}

/// The managed part of a schema.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScopedSchema {
    /// Its existence and owner.
    pub owner: bool,
    /// Privileges on it and in it.
    pub bindings: bool,
}

impl Scope {
    /// The scope of a single manifest: everything that it mentions.
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
