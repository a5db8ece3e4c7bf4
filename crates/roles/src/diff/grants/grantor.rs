//! Decides in which order privileges are revoked, and as whom.
//!
//! A REVOKE takes what one role granted, and PostgreSQL chooses that role: the owner, if the executor is a superuser or the owner.
//! Otherwise it is the first role that holds the grant option of all the privileges, among the executor and the roles whose
//! privileges the executor has. If that role is not the owner, PostgreSQL revokes nothing of what the owner granted, and reports
//! success. The executor then acts as the owner.

use std::cmp::Reverse;
use std::collections::HashSet;

use super::Differ;
use crate::facts::{AclEntry, Object};
use crate::plan::Revoke;

/// By role, kind, schema and name. Dependent grants are revoked before the grant that they depend on: on a column, a role
/// grants and revokes with the option on its table, too.
fn order(depth: usize, revoke: &Revoke) -> impl Ord + '_ {
    (
        revoke.columns.is_empty() || revoke.grantor.is_none(),
        Reverse(depth),
        revoke.cascade,
        &revoke.role,
        revoke.object_type,
        &revoke.schema,
        &revoke.name,
        &revoke.columns,
    )
}

impl Differ<'_> {
    pub(super) fn sort_revoked(&mut self) {
        let revoked = std::mem::take(&mut self.revoked).into_iter();
        let mut revoked: Vec<_> = revoked.map(|revoke| (self.depth(&revoke), revoke)).collect();
        revoked.sort_by(|(depth, one), (other_depth, other)| {
            order(*depth, one).cmp(&order(*other_depth, other))
        });
        self.revoked = revoked.into_iter().map(|(_, revoke)| revoke).collect();
    }

    /// How many roles passed the privilege on before the grantor did.
    fn depth(&self, revoke: &Revoke) -> usize {
        let grantor = revoke.grantor.as_ref();
        let Some((grantor, object)) = grantor
            .and_then(|name| self.view.names.find(name))
            .zip(self.object_of(revoke))
        else {
            return 0;
        };
        let (mut reached, mut depth) = (HashSet::from([object.owner]), 0);
        while !reached.contains(&grantor) {
            let next: Vec<_> = self
                .entries(object)
                .filter(|entry| reached.contains(&entry.grantor) && !reached.contains(&entry.grantee))
                .map(|entry| entry.grantee)
                .collect();
            if next.is_empty() {
                return depth;
            }
            reached.extend(next);
            depth += 1;
        }
        depth
    }

    /// The object of a REVOKE.
    fn object_of(&self, revoke: &Revoke) -> Option<&Object> {
        match revoke.columns.as_slice() {
            [] => self.view.find(&revoke.target, revoke.object_type),
            [column, ..] => self.view.column_of(&revoke.target, column),
        }
    }

    /// Who holds what on an object; for a column also on its table.
    fn entries<'s>(&'s self, object: &'s Object) -> impl Iterator<Item = &'s AclEntry> {
        let column = object.column.as_ref();
        let table = column.and_then(|_| self.view.relation(object));
        let lists = [Some(object), table].into_iter().flatten();
        lists.flat_map(|object| object.acl.iter().flatten())
    }

    /// Names the owner as grantor where PostgreSQL would choose another role.
    pub(super) fn name_owners(&mut self) {
        let mut revoked = std::mem::take(&mut self.revoked);
        for revoke in revoked.iter_mut().filter(|revoke| revoke.grantor.is_none()) {
            revoke.grantor = self.owner_to_name(revoke);
        }
        self.revoked = revoked;
    }

    fn owner_to_name(&self, revoke: &Revoke) -> Option<String> {
        let object = self.object_of(revoke)?;
        let owner = self.view.names.name(object.owner);
        let is_needed = !self.server.superuser
            && self.server.user != owner
            && self.has_other_grantor(object, revoke)
            && !self.is_reclaim(revoke);
        is_needed.then(|| owner.to_owned())
    }

    /// Whether the executor has the grant option as another role than the owner.
    fn has_other_grantor(&self, object: &Object, revoke: &Revoke) -> bool {
        let is_other = |entry: &&AclEntry| {
            let role = self.view.names.name(entry.grantee);
            entry.grantee != object.owner
                && !entry.grantable.is_empty()
                && (role == self.server.user || self.server.acts_as.contains(role))
        };
        let mut others = self.entries(object).filter(is_other);
        others.any(|entry| self.may_grant(object, entry.grantee, revoke.privileges))
    }

    /// Whether it takes back what the same plan grants on a column. PostgreSQL chooses the same role for both.
    fn is_reclaim(&self, revoke: &Revoke) -> bool {
        let mut granted = self.granted.iter().filter(|grant| !grant.columns.is_empty());
        granted.any(|grant| {
            (&grant.role, &grant.schema, &grant.name, &grant.columns)
                == (&revoke.role, &revoke.schema, &revoke.name, &revoke.columns)
        })
    }
}
