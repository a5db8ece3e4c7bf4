//! What one policy would revoke although the other declares it.
//!
//! A policy revokes what it does not declare: where it manages what a role holds, and, in authoritative mode, grant options
//! that its own grants to a role that it manages do not mention. It also revokes what it excludes (`ensure: absent`,
//! `with_grant_option: false`), from every role.

use std::collections::BTreeSet;

use stanchion_roles::expand::{DefaultKey, Desired, GrantKey, Rule, is_excepted};
use stanchion_roles::model::{ObjectType, Privileges};
use stanchion_roles::plan::Mode;

use super::Declared;

impl Declared<'_> {
    /// Whether the policy revokes what it does not declare of a role.
    fn takes(self, role: &str) -> bool {
        self.mode != Mode::Additive
            && self.desired.scope.roles.contains(role)
            && (self.desired.roles.get(role)).is_some_and(|role| !role.preserve_undeclared_grants)
    }

    fn takes_everything(self, role: &str) -> bool {
        self.mode == Mode::Authoritative
            && self.takes(role)
            && self.desired.roles.get(role).is_some_and(|role| role.exclusive)
    }

    /// Whether both define a role. That is reported by itself.
    fn shares(self, role: &str, other: &Desired) -> bool {
        let defines = |desired: &Desired| desired.roles.get(role).is_some_and(|role| !role.external);
        defines(self.desired) && defines(other)
    }

    /// Whether the policy revokes what it does not declare of the subject of a rule, from roles that it manages.
    fn manages(self, key: &GrantKey) -> bool {
        let place = match schema_of(key) {
            Some(schema) => self.binds(schema),
            None => key.kind == ObjectType::Database && self.desired.scope.database,
        };
        // A policy manages the columns of a relation only if it names one of them.
        let has_columns = |ours: &GrantKey| {
            !ours.columns.is_empty()
                && (&ours.grantee, &ours.schema, &ours.name) == (&key.grantee, &key.schema, &key.name)
        };
        place && (key.columns.is_empty() || self.desired.grants.keys().any(has_columns))
    }

    fn binds(self, schema: &str) -> bool {
        let scope = &self.desired.scope;
        scope.schemas.get(schema).is_some_and(|facets| facets.bindings)
    }

    /// What the policy itself says about the subject of a rule: what it grants on all of it, and what it excludes on any part
    /// of it.
    fn says(self, key: &GrantKey) -> Rule {
        let kinds = ObjectType::ALL
            .into_iter()
            .filter(|kind| kind.same_namespace(key.kind));
        let of_kind = |kind| {
            let first = GrantKey {
                grantee: key.grantee.clone(),
                kind,
                schema: key.schema.clone(),
                name: None,
                columns: BTreeSet::new(),
                except: BTreeSet::new(),
            };
            let same = move |ours: &GrantKey| {
                ours.grantee == key.grantee && ours.kind == kind && ours.schema == key.schema
            };
            let rules = self.desired.grants.range(first..);
            rules.take_while(move |(ours, _)| same(ours))
        };
        let mut says = Rule::default();
        for (ours, rule) in kinds.flat_map(of_kind) {
            if includes(ours, key) {
                says.present.add(rule.present);
                says.grantable.add(rule.grantable);
            }
            if meets(ours, key) {
                says.absent.add(rule.absent);
                says.not_grantable.add(rule.not_grantable);
            }
        }
        says
    }

    /// Whether the policy revokes something of what `theirs` requires. `ours` is what the policy says about the same.
    fn contradicts(self, role: &str, ours: Rule, theirs: Rule, takes: bool) -> bool {
        if self.mode == Mode::Additive {
            return false;
        }
        let mut lost = ours.absent;
        if takes {
            lost.add(theirs.present.without(ours.present));
        }
        let mut option = ours.not_grantable;
        if self.mode == Mode::Authoritative && self.takes(role) {
            option.add(ours.present.without(ours.grantable));
        }
        let meet = |required: Privileges, revoked| !required.intersection(revoked).is_empty();
        meet(theirs.present, lost) || meet(theirs.grantable, option)
    }
}

fn schema_of(key: &GrantKey) -> Option<&String> {
    match key.kind {
        ObjectType::Schema => key.name.as_ref(),
        _ => key.schema.as_ref(),
    }
}

/// The name of an object in a rule, as far as it can be compared. A routine may be spelled in several ways, so its arguments
/// are not; names of settings are lower case.
fn bare(key: &GrantKey) -> String {
    let name = key.name.clone().unwrap_or_default();
    match key.kind {
        ObjectType::Function => name.split('(').next().unwrap_or_default().to_owned(),
        ObjectType::Parameter => name.to_ascii_lowercase(),
        _ => name,
    }
}

/// Whether a wildcard is about the object that another rule names.
fn is_about(wildcard: &GrantKey, named: &GrantKey) -> bool {
    wildcard.kind == named.kind
        && !(named.name.as_ref()).is_some_and(|name| is_excepted(&wildcard.except, name))
}

/// Whether a rule is about everything that another one of the same schema is about, as far as the names show. Privileges on
/// a relation are not those on its columns.
fn includes(one: &GrantKey, other: &GrantKey) -> bool {
    let columns = one.columns.is_empty() == other.columns.is_empty()
        && other.columns.iter().all(|column| one.columns.contains(column));
    let objects = match (one.is_wildcard(), other.is_wildcard()) {
        (true, true) => one.kind == other.kind && one.except.iter().all(|name| other.except.contains(name)),
        (true, false) => is_about(one, other),
        (false, true) => false,
        (false, false) => bare(one) == bare(other),
    };
    columns && objects
}

/// Whether two rules of the same schema can be about the same object.
fn meets(one: &GrantKey, other: &GrantKey) -> bool {
    let columns = if one.columns.is_empty() || other.columns.is_empty() {
        one.columns.is_empty() && other.columns.is_empty()
    } else {
        !one.columns.is_disjoint(&other.columns)
    };
    let objects = match (one.is_wildcard(), other.is_wildcard()) {
        (true, true) => one.kind == other.kind,
        (true, false) => is_about(one, other),
        (false, true) => is_about(other, one),
        (false, false) => bare(one) == bare(other),
    };
    columns && objects
}

/// Grants of `other` that `one` revokes.
pub(super) fn taken_grants(one: Declared<'_>, other: &Desired) -> impl Iterator<Item = String> {
    other.grants.iter().filter_map(move |(key, rule)| {
        let role = &key.grantee;
        if rule.present.is_empty() || one.shares(role, other) {
            return None;
        }
        let takes = one.takes(role) && one.manages(key);
        one.contradicts(role, one.says(key), *rule, takes)
            .then(|| format!("privileges of \"{role}\" {}", place(key)))
    })
}

fn place(key: &GrantKey) -> String {
    match (schema_of(key), &key.name) {
        (Some(schema), _) => format!("in schema \"{schema}\""),
        (None, Some(name)) if key.kind != ObjectType::Database => format!("on {} \"{name}\"", key.kind),
        (None, _) => "on the database".to_owned(),
    }
}

/// Default privileges of `other` that `one` revokes.
pub(super) fn taken_defaults(one: Declared<'_>, other: &Desired) -> impl Iterator<Item = String> {
    other.default_privileges.iter().filter_map(move |(key, rule)| {
        let role = &key.grantee;
        if one.shares(role, other) {
            return None;
        }
        let same_owner = |ours: &DefaultKey| ours.schema.is_none() && ours.owner == key.owner;
        let managed = key.schema.as_ref().map_or_else(
            || {
                one.desired.scope.roles.contains(&key.owner)
                    || one.desired.default_privileges.keys().any(same_owner)
            },
            |schema| one.binds(schema),
        );
        let takes = (managed && one.takes(role)) || one.takes_everything(role);
        let ours = (one.desired.default_privileges.get(key))
            .copied()
            .unwrap_or_default();
        one.contradicts(role, ours, *rule, takes)
            .then(|| format!("default privileges of \"{}\" for \"{role}\"", key.owner))
    })
}

/// Memberships of `other` that `one` removes, because the member is exclusive.
pub(super) fn taken_members(one: Declared<'_>, other: &Desired) -> impl Iterator<Item = String> {
    other.memberships.iter().filter_map(move |(group, theirs)| {
        let ours = one.desired.memberships.get(group);
        let lost = |member: &&String| {
            one.takes_everything(member)
                && !one.shares(member, other)
                && !ours.is_some_and(|ours| ours.members.contains_key(*member))
        };
        let found = theirs.members.keys().find(lost);
        found.map(|_| format!("members of \"{group}\""))
    })
}
