//! Restores privileges on columns.
//!
//! A REVOKE on a table also revokes the privilege, or its grant option, on all columns, and CASCADE takes there what was
//! passed on. What roles keep of that is granted again.
//!
//! A role that has the option on the table may grant on a column. PostgreSQL keeps what it granted when the role loses the
//! option, and then nobody can revoke it: not the owner, because only the grantor can, and not the grantor without the
//! option. The owner therefore gives the option on the column to the grantor, and revokes it with CASCADE.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::Differ;
use super::dependents::grants_back;
use crate::facts::{AclEntry, Object, RoleId};
use crate::model::{ObjectType, Privileges};
use crate::plan::{Grant, GrantTarget, Revoke};

impl Differ<'_> {
    /// Grants again, after all REVOKEs, what they take from roles that keep it.
    pub(super) fn restore_columns(&mut self) {
        let relations = self.revoked.iter().filter(|it| it.object_type.is_relation());
        let mut revokes: HashMap<_, Vec<&Revoke>> = HashMap::new();
        for revoke in relations {
            let relation = (revoke.schema.as_deref(), revoke.name.as_deref());
            revokes.entry(relation).or_default().push(revoke);
        }
        if revokes.is_empty() && self.dropped.is_empty() {
            return;
        }
        let mut grants = vec![];
        for (place, column) in self.view.objects().filter(|(_, it)| it.column.is_some()) {
            let relation = (column.schema.as_deref(), Some(&*column.name));
            let revokes = revokes.get(&relation).map_or(&[][..], Vec::as_slice);
            if revokes.is_empty() && self.dropped.is_empty() {
                continue;
            }
            let left = self.left(column, revokes);
            for (role, (kept, option)) in self.kept(place, column) {
                let (held, grantable) = left.held_by(role);
                let option = option.without(grantable);
                let lost = kept.without(held).union(option);
                grants.extend(grants_back(column, self.view.names.name(role), lost, option));
            }
        }
        self.column_grants.extend(grants);
    }

    /// Whether a role may grant, and revoke, these privileges. What it may on a table, it may on the table's columns, too.
    pub(super) fn may_grant(&self, object: &Object, role: RoleId, privileges: Privileges) -> bool {
        let table = object.column.as_ref().and_then(|_| self.view.relation(object));
        let on_table = table.map(|it| it.held_by(role).1);
        let grantable = object.held_by(role).1.union(on_table.unwrap_or_default());
        role == object.owner || privileges.without(grantable).is_empty()
    }

    /// Revokes on a column what a role granted that may no longer do so.
    pub(super) fn reclaim(&mut self, column: &Object, grantor: RoleId, privileges: Privileges) {
        let role = self.view.names.name(grantor);
        let grants: Vec<_> = grants_back(column, role, privileges, privileges).collect();
        let revokes = grants.iter().map(|grant| Revoke {
            role: grant.role.clone(),
            privileges,
            object_type: grant.object_type,
            schema: grant.schema.clone(),
            name: grant.name.clone(),
            columns: grant.columns.clone(),
            grantor: None,
            grant_option_only: false,
            cascade: true,
            target: GrantTarget::of(column),
        });
        self.revoked.extend(revokes);
        self.granted.extend(grants);
    }

    /// What the owner grants on a column in order to revoke it.
    fn reclaimed<'s>(&'s self, column: &'s Object) -> impl Iterator<Item = AclEntry> + 's {
        let same = |grant: &&Grant| {
            grant.schema.as_deref() == column.schema.as_deref()
                && grant.name.as_deref() == Some(&*column.name)
                && grant
                    .columns
                    .iter()
                    .any(|it| column.column.as_deref() == Some(it))
        };
        let on_columns = self.granted.iter().filter(|it| !it.columns.is_empty());
        on_columns.filter(same).filter_map(|grant| {
            Some(AclEntry {
                grantee: self.view.names.find(&grant.role)?,
                grantor: column.owner,
                privileges: grant.privileges,
                grantable: grant.privileges,
            })
        })
    }

    /// The ACL of a column after these REVOKEs on its table or on the column, and after DROP OWNED.
    fn left(&self, column: &Object, revokes: &[&Revoke]) -> Left {
        let mut left = Left {
            owner: column.owner,
            acl: (column.acl.iter().flatten().copied())
                .chain(self.reclaimed(column))
                .collect(),
        };
        for revoke in revokes {
            let is_meant = revoke.columns.is_empty()
                || revoke
                    .columns
                    .iter()
                    .any(|it| column.column.as_deref() == Some(it));
            let id = |name: &String| self.view.names.find(name);
            if let (true, Some(grantee)) = (is_meant, id(&revoke.role)) {
                let grantor = revoke.grantor.as_ref().and_then(id).unwrap_or(column.owner);
                left.revoke(grantee, grantor, revoke.privileges, revoke.grant_option_only);
            }
        }
        for entry in column.acl.iter().flatten() {
            if self.dropped.contains(&entry.grantee) && entry.grantee != column.owner {
                let all = ObjectType::Table.spec().privileges;
                left.revoke(entry.grantee, entry.grantor, all, false);
            }
        }
        left
    }

    /// What each role keeps of its privileges on a column, and which of them it may still pass on.
    fn kept(&self, place: usize, column: &Object) -> BTreeMap<RoleId, (Privileges, Privileges)> {
        let mut kept: BTreeMap<_, (Privileges, Privileges)> = BTreeMap::new();
        for entry in column.acl.iter().flatten() {
            if self.dropped.contains(&entry.grantee) {
                continue;
            }
            let unwanted = self.beyond(place, column, entry).unwanted;
            let option = self.beyond_option(place, column, entry).unwanted;
            let (privileges, grantable) = kept.entry(entry.grantee).or_default();
            privileges.add(entry.privileges.without(unwanted));
            grantable.add(entry.grantable.without(unwanted).without(option));
        }
        kept
    }
}

/// What PostgreSQL leaves of an ACL.
struct Left {
    owner: RoleId,
    acl: Vec<AclEntry>,
}

impl Left {
    /// What a role holds, and which of it it may pass on.
    fn held_by(&self, role: RoleId) -> (Privileges, Privileges) {
        let entries = self.acl.iter().filter(|entry| entry.grantee == role);
        entries.fold(
            Default::default(),
            |(held, grantable): (Privileges, Privileges), entry| {
                (held.union(entry.privileges), grantable.union(entry.grantable))
            },
        )
    }

    /// Revokes with CASCADE, as PostgreSQL's `aclupdate` and `recursive_revoke` do.
    fn revoke(&mut self, grantee: RoleId, grantor: RoleId, privileges: Privileges, option_only: bool) {
        let mut lost = Privileges::NONE;
        let same = |entry: &&mut AclEntry| (entry.grantee, entry.grantor) == (grantee, grantor);
        for entry in self.acl.iter_mut().filter(same) {
            lost.add(entry.grantable.intersection(privileges));
            entry.grantable = entry.grantable.without(privileges);
            if !option_only {
                entry.privileges = entry.privileges.without(privileges);
            }
        }
        // An owner loses no grant option, nor does a role that another grantor gave it, too.
        let lost = lost.without(self.held_by(grantee).1);
        if grantee == self.owner || lost.is_empty() {
            return;
        }
        let dependents = self.acl.iter().filter(|entry| entry.grantor == grantee);
        let dependents: HashSet<_> = dependents.map(|entry| entry.grantee).collect();
        for dependent in dependents {
            self.revoke(dependent, grantee, lost, false);
        }
    }
}
