//! What one policy would revoke although the other declares it.
//!
//! A policy revokes what it does not declare: where it manages what a role holds, and, in authoritative mode, grant options
//! that its own grants to a role that it manages do not mention. It also revokes what it excludes (`ensure: absent`,
//! `with_grant_option: false`), from every role.

use std::collections::BTreeSet;

use stanchion_roles::expand::{Desired, GrantKey, Rule};
use stanchion_roles::model::{ObjectType, Privileges};
use stanchion_roles::plan::Mode;

use super::Declared;
use super::index::Index;

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

    fn binds(self, schema: &str) -> bool {
        let scope = &self.desired.scope;
        scope.schemas.get(schema).is_some_and(|facets| facets.bindings)
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

impl Index<'_> {
    /// Whether the policy revokes what it does not declare of the subject of a rule, from roles that it manages.
    pub(super) fn manages(&self, key: &GrantKey) -> bool {
        let place = match schema_of(key) {
            Some(schema) => self.declared.binds(schema),
            None => key.kind == ObjectType::Database && self.declared.desired.scope.database,
        };
        // A policy manages the columns of a relation only if it names one of them.
        place && (key.columns.is_empty() || self.names_columns_of(key))
    }
}

fn schema_of(key: &GrantKey) -> Option<&String> {
    match key.kind {
        ObjectType::Schema => key.name.as_ref(),
        _ => key.schema.as_ref(),
    }
}

/// Grants of `other` that `one` revokes.
pub(super) fn taken_grants(
    one: &Index<'_>,
    other: &Desired,
    both_define: &BTreeSet<&str>,
) -> impl Iterator<Item = String> {
    other.grants.iter().filter_map(move |(key, rule)| {
        let role = &key.grantee;
        if rule.present.is_empty() || both_define.contains(role.as_str()) {
            return None;
        }
        let takes = one.declared.takes(role) && one.manages(key);
        one.declared
            .contradicts(role, one.says(key), *rule, takes)
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
pub(super) fn taken_defaults(
    index: &Index<'_>,
    other: &Desired,
    both_define: &BTreeSet<&str>,
) -> impl Iterator<Item = String> {
    let one = index.declared;
    other.default_privileges.iter().filter_map(move |(key, rule)| {
        let role = &key.grantee;
        if both_define.contains(role.as_str()) {
            return None;
        }
        let managed = key.schema.as_ref().map_or_else(
            || one.desired.scope.roles.contains(&key.owner) || index.owners.contains(key.owner.as_str()),
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
pub(super) fn taken_members(
    one: Declared<'_>,
    other: &Desired,
    both_define: &BTreeSet<&str>,
) -> impl Iterator<Item = String> {
    other.memberships.iter().filter_map(move |(group, theirs)| {
        let ours = one.desired.memberships.get(group);
        let lost = |member: &&String| {
            one.takes_everything(member)
                && !both_define.contains(member.as_str())
                && !ours.is_some_and(|ours| ours.members.contains_key(*member))
        };
        let found = theirs.members.keys().find(lost);
        found.map(|_| format!("members of \"{group}\""))
    })
}
