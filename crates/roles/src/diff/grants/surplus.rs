//! Finds privileges that roles hold beyond the manifest.

use super::Differ;
use crate::diff::UNDECLARED_OPTION;
use crate::expand::Rule;
use crate::facts::{AclEntry, Object, RoleId};
use crate::model::{ObjectType, PUBLIC, Privileges};
use crate::plan::{GrantTarget, Mode, Revoke};

/// Privileges of a role beyond the rules.
#[derive(Default)]
pub(super) struct Beyond {
    /// Privileges to revoke.
    pub(super) unwanted: Privileges,
    /// Unmanaged privileges, which are only reported.
    unmanaged: Privileges,
}

impl Differ<'_> {
    pub(super) fn surplus(&mut self) {
        let view = self.view;
        for (place, object) in view.objects() {
            if object.acl.is_none() {
                self.implicit(place, object, RoleId::PUBLIC);
                self.implicit(place, object, object.owner);
            }
            for entry in object.acl.iter().flatten() {
                if self.dropped.contains(&entry.grantee) && entry.grantee != object.owner {
                    if entry.grantor != object.owner {
                        // DROP OWNED revokes only what the owner granted.
                        self.revoke(place, object, entry, entry.privileges, false);
                        continue;
                    }
                    self.keep_dependents(place, object, entry, entry.privileges);
                }
                let beyond = self.beyond(place, object, entry);
                self.report(object, entry.grantee, beyond.unmanaged);
                self.revoke(place, object, entry, beyond.unwanted, false);
                let option = self.beyond_option(place, object, entry);
                self.warn_of_option(object, entry.grantee, option.undeclared, UNDECLARED_OPTION);
                self.revoke(place, object, entry, option.unwanted, true);
            }
        }
    }

    pub(super) fn beyond(&self, place: usize, object: &Object, entry: &AclEntry) -> Beyond {
        let want = self.want(place, object, entry.grantee);
        let forbidden = entry.privileges.intersection(want.absent);
        let rest = entry.privileges.without(want.present).without(want.absent);
        let managed = self
            .managed
            .get(&entry.grantee)
            .filter(|_| entry.grantee != object.owner);
        let Some((name, role)) = managed.filter(|_| !rest.is_empty()) else {
            return Beyond {
                unwanted: forbidden,
                unmanaged: Privileges::NONE,
            };
        };
        let ours = self.in_scope(object) || self.has_column_rule(object, name);
        let (undeclared, unmanaged) = if ours && role.preserve_undeclared_grants {
            (Privileges::NONE, Privileges::NONE)
        } else if ours || (role.exclusive && self.mode == Mode::Authoritative) {
            (rest, Privileges::NONE)
        } else {
            (Privileges::NONE, rest)
        };
        Beyond {
            unwanted: forbidden.union(undeclared),
            unmanaged,
        }
    }

    /// Revokes the implicit privileges of PUBLIC or the owner on an object that has no ACL.
    fn implicit(&mut self, place: usize, object: &Object, grantee: RoleId) {
        let want = self.want(place, object, grantee);
        let privileges = object.held_by(grantee).0.intersection(want.absent);
        let grantable = Privileges::NONE;
        let entry = AclEntry {
            grantee,
            grantor: object.owner,
            privileges,
            grantable,
        };
        self.revoke(place, object, &entry, privileges, false);
    }

    pub(super) fn want(&self, place: usize, object: &Object, grantee: RoleId) -> Rule {
        match (&object.column, &object.schema) {
            (Some(column), Some(schema)) => self
                .columns
                .get(&(&**schema, &*object.name, self.view.names.name(grantee)))
                .and_then(|rules| rules.get(&**column))
                .copied()
                .unwrap_or_default(),
            _ => self.wants.get(place, grantee),
        }
    }

    fn in_scope(&self, object: &Object) -> bool {
        let scope = &self.desired.scope;
        let bindings = |schema: &str| scope.schemas.get(schema).is_some_and(|facets| facets.bindings);
        match (object.kind, &object.schema) {
            _ if object.column.is_some() => false,
            (ObjectType::Database, _) => scope.database,
            (ObjectType::Schema, _) => bindings(&object.name),
            (_, Some(schema)) => bindings(schema),
            // Objects outside of schemas are managed only for the roles that a rule names.
            (_, None) => false,
        }
    }

    /// If one column of a relation is managed, all of its columns are.
    fn has_column_rule(&self, object: &Object, role: &str) -> bool {
        let has = |schema: &str| self.columns.contains_key(&(schema, &*object.name, role));
        object.column.is_some() && object.schema.as_deref().is_some_and(has)
    }

    fn report(&mut self, object: &Object, role: RoleId, privileges: Privileges) {
        if privileges.is_empty() {
            return;
        }
        self.plan.holdings.push(format!(
            "role \"{}\" also holds {privileges} on {}, which the manifest does not manage",
            self.view.names.name(role),
            described(object)
        ));
    }

    fn revoke(
        &mut self,
        place: usize,
        object: &Object,
        entry: &AclEntry,
        privileges: Privileges,
        option_only: bool,
    ) {
        if privileges.is_empty() {
            return;
        }
        if object.column.is_some() && !self.may_grant(object, entry.grantor, privileges) {
            self.reclaim(object, entry.grantor, privileges);
            return;
        }
        let cascade = self.keep_dependents(place, object, entry, privileges);
        let name = |id: RoleId| {
            if id == RoleId::PUBLIC {
                PUBLIC
            } else {
                self.view.names.name(id)
            }
        };
        self.revoked.push(Revoke {
            role: name(entry.grantee).to_owned(),
            privileges,
            object_type: object.kind,
            schema: object.schema.as_deref().map(str::to_owned),
            name: Some(object.display_name()),
            columns: object.column.iter().map(ToString::to_string).collect(),
            grantor: (entry.grantor != object.owner).then(|| name(entry.grantor).to_owned()),
            grant_option_only: option_only,
            cascade,
            target: GrantTarget::of(object),
        });
    }
}

/// `table "schema"."name"`, or a column of it.
pub(super) fn described(object: &Object) -> String {
    let place: Vec<_> = object
        .schema
        .iter()
        .map(|schema| &**schema)
        .chain([&*object.name])
        .collect();
    let column = object
        .column
        .as_ref()
        .map(|column| format!("column \"{column}\" of "))
        .unwrap_or_default();
    format!("{column}{} \"{}\"", object.kind, place.join("\".\""))
}
