//! Finds roles that received a privilege from one that loses it.

use std::collections::HashSet;

use super::Differ;
use crate::facts::{AclEntry, Object, RoleId};
use crate::model::Privileges;
use crate::plan::{Grant, GrantTarget};

impl Differ<'_> {
    /// A role that received a privilege from the one that loses it, and must keep it, gets it from the owner. Returns whether
    /// there is one that loses it.
    pub(super) fn keep_dependents(
        &mut self,
        place: usize,
        object: &Object,
        losing: &AclEntry,
        privileges: Privileges,
    ) -> bool {
        let passed_on = losing.grantable.intersection(privileges);
        let dependents = dependents(object, losing.grantee, passed_on);
        // Columns are granted again after all REVOKEs: one on the table would take them.
        let on_object = dependents.iter().filter(|_| object.column.is_none());
        for dependent in on_object {
            if self.dropped.contains(&dependent.grantee) {
                continue;
            }
            let kept = dependent
                .privileges
                .intersection(passed_on)
                .without(self.beyond(place, object, dependent).unwanted);
            let option = kept
                .intersection(dependent.grantable)
                .without(self.beyond_option(place, object, dependent).unwanted);
            let role = self.view.names.name(dependent.grantee);
            self.granted.extend(grants_back(object, role, kept, option));
        }
        !dependents.is_empty() || self.has_dependents_on_columns(object, losing, privileges)
    }

    /// Whether a REVOKE on a relation takes from the role what it has passed on of a column.
    fn has_dependents_on_columns(&self, object: &Object, losing: &AclEntry, privileges: Privileges) -> bool {
        let mut columns = self.view.columns(object).filter(|_| object.column.is_none());
        columns.any(|column| {
            let mut held = column
                .acl
                .iter()
                .flatten()
                .filter(|entry| (entry.grantee, entry.grantor) == (losing.grantee, losing.grantor));
            held.any(|entry| {
                let passed_on = entry.grantable.intersection(privileges);
                !dependents(column, entry.grantee, passed_on).is_empty()
            })
        })
    }
}

/// The grants that give a role these privileges, some of them with the grant option.
pub(super) fn grants_back(
    object: &Object,
    role: &str,
    privileges: Privileges,
    option: Privileges,
) -> impl Iterator<Item = Grant> {
    let parts = [(privileges.without(option), false), (option, true)];
    let wanted = parts.into_iter().filter(|(privileges, _)| !privileges.is_empty());
    wanted.map(move |(privileges, with_grant_option)| Grant {
        role: role.to_owned(),
        privileges,
        object_type: object.kind,
        schema: object.schema.as_deref().map(str::to_owned),
        name: Some(object.display_name()),
        columns: object.column.iter().map(ToString::to_string).collect(),
        with_grant_option,
        targets: vec![GrantTarget::of(object)],
    })
}

/// Every role that has one of the privileges from this role, directly or through others.
fn dependents(object: &Object, from: RoleId, privileges: Privileges) -> Vec<&AclEntry> {
    let mut givers = HashSet::from([from]);
    let mut dependents: Vec<&AclEntry> = vec![];
    loop {
        let more: Vec<_> = object
            .acl
            .iter()
            .flatten()
            .filter(|entry| {
                givers.contains(&entry.grantor) && !entry.privileges.intersection(privileges).is_empty()
            })
            .filter(|entry| !dependents.contains(entry))
            .collect();
        if more.is_empty() {
            return dependents;
        }
        givers.extend(more.iter().map(|entry| entry.grantee));
        dependents.extend(more);
    }
}
