//! Finds privileges that roles hold beyond the manifest.

use std::collections::{HashMap, HashSet};

use super::Differ;
use crate::expand::Rule;
use crate::facts::{AclEntry, Object, RoleId};
use crate::model::{ObjectType, PUBLIC, Privileges};
use crate::plan::{Grant, GrantTarget, Mode, Revoke};

/// Privileges of a role beyond the rules.
#[derive(Default)]
struct Beyond {
    /// Privileges to revoke.
    unwanted: Privileges,
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
                    self.keep_heirs(place, object, entry, entry.privileges);
                }
                let beyond = self.beyond(place, object, entry);
                self.report(object, entry.grantee, beyond.unmanaged);
                self.revoke(place, object, entry, beyond.unwanted, false);
                let want = self.want(place, object, entry.grantee);
                let undeclared = self
                    .undeclared_option(place, object, entry)
                    .without(beyond.unwanted);
                let (taken, kept) = self.split_options(entry, undeclared);
                self.warn_of_option(object, entry.grantee, kept);
                let option = entry
                    .grantable
                    .intersection(want.not_grantable)
                    .union(taken)
                    .without(beyond.unwanted);
                self.revoke(place, object, entry, option, true);
            }
        }
    }

    /// Warns of undeclared grant options, which additive mode does not revoke.
    pub(super) fn warn_of_options(&mut self) {
        let view = self.view;
        for (place, object) in view.objects() {
            for entry in object.acl.iter().flatten() {
                let undeclared = self.undeclared_option(place, object, entry);
                self.warn_of_option(object, entry.grantee, undeclared);
            }
        }
    }

    /// Declared privileges whose grant option the role holds, although the rules do not mention it.
    fn undeclared_option(&self, place: usize, object: &Object, entry: &AclEntry) -> Privileges {
        if entry.grantee == object.owner || entry.grantable.is_empty() {
            return Privileges::NONE;
        }
        let want = self.want(place, object, entry.grantee);
        let given = entry.grantable.intersection(want.present);
        given.without(want.grantable).without(want.not_grantable)
    }

    /// Splits grant options into those to revoke and those to report: authoritative mode revokes them from managed
    /// roles.
    fn split_options(&self, entry: &AclEntry, undeclared: Privileges) -> (Privileges, Privileges) {
        let managed = self.managed.get(&entry.grantee);
        let strict = self.mode == Mode::Authoritative
            && managed.is_some_and(|(_, role)| !role.preserve_undeclared_grants);
        if strict {
            (undeclared, Privileges::NONE)
        } else {
            (Privileges::NONE, undeclared)
        }
    }

    fn warn_of_option(&mut self, object: &Object, role: RoleId, privileges: Privileges) {
        if privileges.is_empty() {
            return;
        }
        let text = format!(
            "role \"{}\" may pass {privileges} on {} on to others (WITH GRANT OPTION), which the manifest does not say; \
             state `with_grant_option`",
            self.view.names.name(role),
            described(object)
        );
        if self.plan.warnings.last() != Some(&text) {
            self.plan.warnings.push(text);
        }
    }

    /// Restores column privileges that are lost when a privilege on the table is revoked.
    pub(super) fn restore_columns(&mut self) {
        let on_tables = self.revoked.iter().filter(|revoke| {
            revoke.object_type.is_relation() && revoke.columns.is_empty() && !revoke.grant_option_only
        });
        let mut lost: HashMap<_, Privileges> = HashMap::new();
        for revoke in on_tables {
            let key = (revoke.schema.clone(), revoke.name.clone(), revoke.role.clone());
            lost.entry(key).or_default().add(revoke.privileges);
        }
        if lost.is_empty() {
            return;
        }
        for (place, object) in self.view.objects().filter(|(_, object)| object.column.is_some()) {
            for entry in object.acl.iter().flatten() {
                let role = self.view.names.name(entry.grantee);
                let key = (
                    object.schema.as_deref().map(str::to_owned),
                    Some(object.display_name()),
                    role.to_owned(),
                );
                let Some(lost) = lost.get(&key) else { continue };
                let kept = entry
                    .privileges
                    .without(self.beyond(place, object, entry).unwanted)
                    .intersection(*lost);
                let option = kept.intersection(entry.grantable);
                for (privileges, with_grant_option) in [(kept.without(option), false), (option, true)] {
                    if !privileges.is_empty() {
                        let grant = grant_back(object, role, privileges, with_grant_option);
                        self.column_grants.push(grant);
                    }
                }
            }
        }
    }

    fn beyond(&self, place: usize, object: &Object, entry: &AclEntry) -> Beyond {
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

    fn want(&self, place: usize, object: &Object, grantee: RoleId) -> Rule {
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
        let cascade = self.keep_heirs(place, object, entry, privileges);
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

    /// A role that received a privilege from the one that loses it, and must keep it, gets it from the owner. Returns whether
    /// there is one that loses it.
    fn keep_heirs(
        &mut self,
        place: usize,
        object: &Object,
        losing: &AclEntry,
        privileges: Privileges,
    ) -> bool {
        let passed_on = losing.grantable.intersection(privileges);
        let heirs = heirs(object, losing.grantee, passed_on);
        for new_owner in &heirs {
            if self.dropped.contains(&new_owner.grantee) {
                continue;
            }
            let kept = new_owner
                .privileges
                .intersection(passed_on)
                .without(self.beyond(place, object, new_owner).unwanted);
            let not_grantable = self.want(place, object, new_owner.grantee).not_grantable;
            let (taken, _) = self.split_options(new_owner, self.undeclared_option(place, object, new_owner));
            let option = kept
                .intersection(new_owner.grantable)
                .without(not_grantable)
                .without(taken);
            for (privileges, with_grant_option) in [(kept.without(option), false), (option, true)] {
                if !privileges.is_empty() {
                    let role = self.view.names.name(new_owner.grantee);
                    self.granted
                        .push(grant_back(object, role, privileges, with_grant_option));
                }
            }
        }
        !heirs.is_empty()
    }
}

/// `table "schema"."name"`, or a column of it.
fn described(object: &Object) -> String {
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

fn grant_back(object: &Object, role: &str, privileges: Privileges, with_grant_option: bool) -> Grant {
    Grant {
        role: role.to_owned(),
        privileges,
        object_type: object.kind,
        schema: object.schema.as_deref().map(str::to_owned),
        name: Some(object.display_name()),
        columns: object.column.iter().map(ToString::to_string).collect(),
        with_grant_option,
        targets: vec![GrantTarget::of(object)],
    }
}

/// Every role that has one of the privileges from this role, directly or through others.
fn heirs(object: &Object, from: RoleId, privileges: Privileges) -> Vec<&AclEntry> {
    let mut givers = HashSet::from([from]);
    let mut heirs: Vec<&AclEntry> = vec![];
    loop {
        let more: Vec<_> = object
            .acl
            .iter()
            .flatten()
            .filter(|entry| {
                givers.contains(&entry.grantor) && !entry.privileges.intersection(privileges).is_empty()
            })
            .filter(|entry| !heirs.contains(entry))
            .collect();
        if more.is_empty() {
            return heirs;
        }
        givers.extend(more.iter().map(|entry| entry.grantee));
        heirs.extend(more);
    }
}
