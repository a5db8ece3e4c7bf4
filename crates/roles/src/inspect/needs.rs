//! Determines what to inspect for a desired state. Nothing else is fetched.

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
    /// Roles that get members: all roles above them are needed, at any distance.
    pub joined: Vec<String>,
    /// Roles whose memberships are needed.
    pub managed: Vec<String>,
    /// Roles whose privileges on objects outside of `contents`, and on columns anywhere, are needed.
    pub holders: Vec<String>,
    /// Schemas whose existence and owner are needed.
    pub schemas: Vec<String>,
    /// Those of them whose contents are needed.
    pub contents: Vec<String>,
    /// Kinds of which every object is needed, because of a wildcard.
    pub inventory: BTreeSet<ObjectType>,
    /// Objects in schemas that a rule names.
    pub named: BTreeSet<(ObjectType, String)>,
    /// Relations with columns that a rule names.
    pub columns: BTreeSet<(String, String)>,
    /// Objects outside of schemas that a rule names.
    pub global: BTreeSet<(ObjectType, String)>,
    /// Whether privileges on the database are managed, not only looked up.
    pub database: bool,
    /// Roles to drop.
    pub retired: Vec<String>,
}

impl Needs {
    /// What the diff of a desired state needs.
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
            holders: holders(desired),
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
                    // pg_shdepend does not record PUBLIC and the owner.
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
        for key in desired.spared.keys().filter(|key| !key.columns.is_empty()) {
            let place = key.schema.clone().zip(key.name.clone());
            needs.columns.extend(place);
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

    /// Names of objects of these kinds that a rule names.
    pub(super) fn names_of(&self, is_kind: impl Fn(ObjectType) -> bool) -> Vec<String> {
        self.named
            .iter()
            .filter(|(kind, _)| is_kind(*kind))
            .map(|(_, name)| name.clone())
            .collect()
    }
}

/// Managed roles; those to drop, which may have passed privileges on; and those that lose a privilege or its grant option
/// on a relation, and with it the same on its columns.
fn holders(desired: &Desired) -> Vec<String> {
    let retired = desired.retirements.iter().map(|retirement| &retirement.role);
    let losing = desired.grants.iter().filter_map(|(key, rule)| {
        let loses = !rule.absent.is_empty() || !rule.not_grantable.is_empty();
        (loses && key.kind.is_relation() && key.columns.is_empty()).then_some(&key.grantee)
    });
    let all: BTreeSet<_> = desired.scope.roles.iter().chain(retired).chain(losing).collect();
    all.into_iter().cloned().collect()
}
