//! Compares schemas and their owners.

use std::collections::BTreeSet;

use super::view::View;
use crate::expand::Desired;
use crate::facts::Facts;
use crate::model::ObjectType;
use crate::plan::Change;

pub(super) struct Schemas {
    pub(super) changes: Vec<Change>,
    /// Schemas whose owner changes, with the new owner.
    pub(super) transfers: BTreeSet<(String, String)>,
}

pub(super) fn diff(desired: &Desired, facts: &Facts) -> Schemas {
    let mut schemas = Schemas {
        changes: vec![],
        transfers: BTreeSet::new(),
    };
    for (name, owner) in &desired.schemas {
        match (facts.schema_owner(name), owner) {
            (None, _) => schemas.changes.push(Change::CreateSchema {
                name: name.clone(),
                owner: owner.clone(),
            }),
            (Some(current), Some(owner)) if current != owner => {
                schemas.changes.push(Change::AlterSchemaOwner {
                    name: name.clone(),
                    owner: owner.clone(),
                });
                schemas.transfers.insert((name.clone(), owner.clone()));
            }
            _ => {}
        }
    }
    schemas
}

/// Restores the privileges of a schema's owner on the schema: without them its tables are unusable.
pub(super) fn repair(desired: &Desired, view: &View<'_>) -> Vec<Change> {
    let mut repairs = vec![];
    for (name, owner) in &desired.schemas {
        let Some(owner) = owner else { continue };
        let Some(object) = view.schema(name) else { continue };
        let (held, _) = object.held_by(object.owner);
        let missing = ObjectType::Schema.spec().privileges.without(held);
        if !missing.is_empty() {
            repairs.push(Change::EnsureSchemaOwnerPrivileges {
                name: name.clone(),
                owner: owner.clone(),
                privileges: missing,
            });
        }
    }
    repairs
}
