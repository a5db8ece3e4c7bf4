//! What has to be looked at, for a given desired state. Nothing else is fetched.

use std::collections::BTreeSet;

use crate::expand::Desired;
use crate::model::{ObjectType, Signature};

/// What an inspection fetches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// Roles whose attributes are needed.
    pub roles: Vec<String>,
    /// Roles whose verifiers are needed.
    pub passwords: Vec<String>,
    /// Roles whose members are needed.
    pub groups: Vec<String>,
    /// Roles that get members: those that they are in turn members of are needed, however far away.
    pub joined: Vec<String>,
    /// Roles whose memberships and holdings elsewhere are needed.
    pub managed: Vec<String>,
    /// Schemas whose existence and owner are needed.
    pub schemas: Vec<String>,
    /// Those of them whose contents are needed.
    pub contents: Vec<String>,
    /// Kinds of which every object is needed, because a wildcard means them all.
    pub inventory: BTreeSet<ObjectType>,
    /// Objects in schemas that are meant by name.
    pub named: BTreeSet<(ObjectType, String)>,
    /// Relations some of whose columns are meant by name.
    pub columns: BTreeSet<(String, String)>,
    /// Objects outside of schemas that are meant by name.
    pub global: BTreeSet<(ObjectType, String)>,
    /// Privileges on the database are managed, not only looked up.
    pub database: bool,
    /// Roles that are to be dropped.
    pub retired: Vec<String>,
}

impl Needs {
    /// What the diff of this desired state needs.
    pub fn of(desired: &Desired) -> Self {
        let mut roles: BTreeSet<&str> = desired.roles.keys().map(String::as_str).collect();
        roles.extend(
            desired
                .retirements
                .iter()
                .map(|retirement| retirement.role.as_str()),
        );
        roles.extend(
            desired
                .retirements
                .iter()
                .filter_map(|retirement| retirement.reassign_owned_to.as_deref()),
        );
        let mut needs = Self {
            passwords: desired
                .roles
                .iter()
                .filter(|(_, role)| role.password.is_some())
                .map(|(name, _)| name.clone())
                .collect(),
            groups: desired.memberships.keys().cloned().collect(),
            joined: desired
                .memberships
                .iter()
                .filter(|(_, membership)| !membership.members.is_empty())
                .map(|(name, _)| name.clone())
                .collect(),
            managed: desired.scope.roles.iter().cloned().collect(),
            database: desired.scope.database,
            retired: desired
                .retirements
                .iter()
                .map(|retirement| retirement.role.clone())
                .collect(),
            ..Self::default()
        };
        let mut contents: BTreeSet<&str> = desired.scope.privilege_schemas().collect();
        for key in desired.grants.keys() {
            let Some(name) = &key.name else { continue };
            match (&key.schema, key.kind) {
                (Some(schema), kind) => {
                    contents.insert(schema);
                    if key.is_wildcard() {
                        needs.inventory.insert(kind);
                    } else {
                        let bare =
                            Signature::parse(name).map_or_else(|_| name.clone(), |signature| signature.name);
                        let bare = if kind == ObjectType::Function {
                            bare
                        } else {
                            name.clone()
                        };
                        needs.named.insert((kind, bare));
                    }
                    // pg_shdepend would not tell of PUBLIC and of the owner.
                    if !key.columns.is_empty() {
                        needs.columns.insert((schema.clone(), name.clone()));
                    }
                }
                (None, ObjectType::Schema) => {
                    contents.insert(name);
                }
                (None, ObjectType::Database) => {}
                (None, kind) => {
                    needs.global.insert((kind, name.clone()));
                }
            }
        }
        let mut schemas: BTreeSet<&str> = desired.schemas.keys().map(String::as_str).collect();
        schemas.extend(desired.scope.schemas.keys().map(String::as_str));
        schemas.extend(&contents);
        let owned = |names: BTreeSet<&str>| names.into_iter().map(str::to_owned).collect::<Vec<_>>();
        needs.roles = owned(roles);
        needs.schemas = owned(schemas);
        needs.contents = owned(contents);
        needs
    }

    /// Whether every object of the kind is needed.
    pub(super) fn all_of(&self, kind: ObjectType) -> bool {
        self.inventory.contains(&kind)
    }

    /// Names of objects of these kinds that are meant by name.
    pub(super) fn names_of(&self, is_kind: impl Fn(ObjectType) -> bool) -> Vec<String> {
        self.named
            .iter()
            .filter(|(kind, _)| is_kind(*kind))
            .map(|(_, name)| name.clone())
            .collect()
    }
}
