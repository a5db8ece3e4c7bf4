//! Determines where two policies conflict. Pure.
//!
//! Roles belong to the server, everything else to a database. Two policies overlap where both decide: both define a
//! role, both own a schema, both declare the privileges of a role in a schema, or one manages all members of a group
//! and the other declares members of it. They also overlap where one would revoke what the other grants: the one manages
//! what a role holds in a schema, and the other grants the role something there that the one does not. Any other grant to a
//! role that another policy defines is not an overlap.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use stanchion_roles::expand::{DefaultKey, Desired, GrantKey, Rule, is_excepted};
use stanchion_roles::model::ObjectType;
use stanchion_roles::plan::Mode;

/// What a policy declares, and which changes it makes for that.
#[derive(Clone, Copy)]
pub(crate) struct Declared<'a> {
    pub(crate) desired: &'a Desired,
    pub(crate) mode: Mode,
}

/// What both declare, as text for people; empty if there is no overlap.
pub(crate) fn overlap(one: Declared<'_>, other: Declared<'_>, same_database: bool) -> Vec<String> {
    let (ours, theirs) = (one.desired, other.desired);
    let mut found: Vec<String> = defined(ours)
        .intersection(&defined(theirs))
        .map(|role| format!("role \"{role}\""))
        .collect();
    found.extend(members(ours, theirs));
    let mut taken: BTreeSet<String> = taken_members(one, theirs)
        .chain(taken_members(other, ours))
        .collect();
    if same_database {
        let schemas = ours
            .schemas
            .keys()
            .filter(|name| theirs.schemas.contains_key(*name));
        found.extend(schemas.map(|name| format!("schema \"{name}\"")));
        found.extend(privileges(ours, theirs));
        found.extend(defaults(ours, theirs));
        taken.extend(taken_grants(one, theirs).chain(taken_grants(other, ours)));
        taken.extend(taken_defaults(one, theirs).chain(taken_defaults(other, ours)));
    }
    taken.retain(|text| !found.contains(text));
    found.extend(taken);
    found
}

/// The roles that a policy creates, alters or drops.
pub(crate) fn defined(desired: &Desired) -> BTreeSet<&str> {
    let made = desired.roles.iter().filter(|(_, role)| !role.external);
    let dropped = desired
        .retirements
        .iter()
        .map(|retirement| retirement.role.as_str());
    made.map(|(name, _)| name.as_str()).chain(dropped).collect()
}

fn members(one: &Desired, other: &Desired) -> Vec<String> {
    let groups = one.memberships.iter().filter_map(|(group, ours)| {
        let theirs = other.memberships.get(group)?;
        let fights = (ours.exhaustive && !theirs.members.is_empty())
            || (theirs.exhaustive && !ours.members.is_empty());
        // Two definitions of the group are reported already.
        let both_define = defined(one).contains(group.as_str()) && defined(other).contains(group.as_str());
        (fights && !both_define).then(|| format!("members of \"{group}\""))
    });
    groups.collect()
}

fn privileges(one: &Desired, other: &Desired) -> Vec<String> {
    let mut found = Vec::new();
    let both_define: BTreeSet<_> = defined(one).intersection(&defined(other)).copied().collect();
    let schemas: BTreeSet<&str> = one.scope.privilege_schemas().collect();
    let shared: Vec<&str> = other
        .scope
        .privilege_schemas()
        .filter(|name| schemas.contains(name))
        .collect();
    for role in one.scope.roles.intersection(&other.scope.roles) {
        let takes = |desired: &Desired| {
            desired
                .roles
                .get(role)
                .is_some_and(|role| !role.preserve_undeclared_grants)
        };
        if both_define.contains(role.as_str()) || !(takes(one) || takes(other)) {
            continue;
        }
        found.extend(
            shared
                .iter()
                .map(|schema| format!("privileges of \"{role}\" in schema \"{schema}\"")),
        );
        if one.scope.database && other.scope.database {
            found.push(format!("privileges of \"{role}\" on the database"));
        }
    }
    for (exclusive, granting) in [(one, other), (other, one)] {
        let alone = exclusive.roles.iter().filter(|(_, role)| role.exclusive);
        for (name, _) in alone.filter(|(name, _)| !both_define.contains(name.as_str())) {
            if granting.grants.keys().any(|key| key.grantee == *name) {
                found.push(format!("everything that \"{name}\" holds"));
            }
        }
    }
    found
}

/// Global default privileges have no schema that separates them.
fn defaults(one: &Desired, other: &Desired) -> Vec<String> {
    let everywhere = one.default_privileges.keys().filter(|key| key.schema.is_none());
    let both = everywhere.filter(|key| other.default_privileges.contains_key(key));
    both.map(|key| format!("default privileges of \"{}\" for \"{}\"", key.owner, key.grantee))
        .collect()
}

impl Declared<'_> {
    /// Whether the policy revokes what it does not declare of a role, unless the role is the other one's, too: that is
    /// reported by itself.
    fn takes(self, role: &str, other: &Desired) -> bool {
        let ours = |desired: &Desired| desired.roles.get(role).is_some_and(|role| !role.external);
        self.mode != Mode::Additive
            && self.desired.scope.roles.contains(role)
            && (self.desired.roles.get(role)).is_some_and(|role| !role.preserve_undeclared_grants)
            && !(ours(self.desired) && ours(other))
    }

    fn takes_everything(self, role: &str, other: &Desired) -> bool {
        self.mode == Mode::Authoritative
            && self.takes(role, other)
            && self.desired.roles.get(role).is_some_and(|role| role.exclusive)
    }

    fn binds(self, schema: &str) -> bool {
        let scope = &self.desired.scope;
        scope.schemas.get(schema).is_some_and(|facets| facets.bindings)
    }

    /// What the policy grants itself to the subject of a rule.
    fn grants(self, key: &GrantKey) -> Rule {
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
        kinds
            .flat_map(of_kind)
            .filter(|(ours, _)| includes(ours, key))
            .fold(Rule::default(), |all, (_, rule)| Rule {
                present: all.present.union(rule.present),
                grantable: all.grantable.union(rule.grantable),
                ..all
            })
    }
}

/// Whether a rule is about everything that another one of the same schema is about, as far as the names show. A routine may
/// be spelled in several ways, so its arguments are not compared.
fn includes(one: &GrantKey, other: &GrantKey) -> bool {
    let bare = |key: &GrantKey| {
        let name = key.name.clone().unwrap_or_default();
        let end = name.find('(').filter(|_| key.kind == ObjectType::Function);
        end.and_then(|end| name.get(..end).map(str::to_owned))
            .unwrap_or(name)
    };
    let columns = one.columns.is_empty()
        || (!other.columns.is_empty() && other.columns.iter().all(|column| one.columns.contains(column)));
    let objects = match (one.is_wildcard(), other.is_wildcard()) {
        (true, true) => one.kind == other.kind && one.except.iter().all(|name| other.except.contains(name)),
        (true, false) => {
            one.kind == other.kind
                && !(other.name.as_ref()).is_some_and(|name| is_excepted(&one.except, name))
        }
        (false, true) => false,
        (false, false) => bare(one) == bare(other),
    };
    columns && objects
}

/// Grants of `other` that `one` revokes.
fn taken_grants(one: Declared<'_>, other: &Desired) -> impl Iterator<Item = String> {
    other.grants.iter().filter_map(move |(key, rule)| {
        let role = &key.grantee;
        if rule.present.is_empty() || !one.takes(role, other) {
            return None;
        }
        let schema = match key.kind {
            ObjectType::Schema => key.name.as_ref(),
            _ => key.schema.as_ref(),
        };
        let place = match (key.kind, schema) {
            (ObjectType::Database, _) if one.desired.scope.database => "on the database".to_owned(),
            (_, Some(schema)) if one.binds(schema) => format!("in schema \"{schema}\""),
            _ => return None,
        };
        // A policy manages the columns of a relation only if it names one of them.
        let has_columns = |ours: &GrantKey| {
            !ours.columns.is_empty()
                && (&ours.grantee, &ours.schema, &ours.name) == (role, &key.schema, &key.name)
        };
        if !key.columns.is_empty() && !one.desired.grants.keys().any(has_columns) {
            return None;
        }
        let ours = one.grants(key);
        let lost = rule.present.without(ours.present);
        let option = rule.grantable.intersection(ours.present).without(ours.grantable);
        (!lost.is_empty() || !option.is_empty()).then(|| format!("privileges of \"{role}\" {place}"))
    })
}

/// Default privileges of `other` that `one` revokes.
fn taken_defaults(one: Declared<'_>, other: &Desired) -> impl Iterator<Item = String> {
    other.default_privileges.iter().filter_map(move |(key, rule)| {
        let same_owner = |ours: &DefaultKey| ours.schema.is_none() && ours.owner == key.owner;
        let managed = key.schema.as_ref().map_or_else(
            || {
                one.desired.scope.roles.contains(&key.owner)
                    || one.desired.default_privileges.keys().any(same_owner)
            },
            |schema| one.binds(schema),
        );
        let takes = (managed && one.takes(&key.grantee, other)) || one.takes_everything(&key.grantee, other);
        let ours = (one.desired.default_privileges.get(key))
            .copied()
            .unwrap_or_default();
        let lost = rule.present.without(ours.present);
        let option = rule.grantable.intersection(ours.present).without(ours.grantable);
        (takes && !(lost.is_empty() && option.is_empty()))
            .then(|| format!("default privileges of \"{}\" for \"{}\"", key.owner, key.grantee))
    })
}

/// Memberships of `other` that `one` removes, because the member is exclusive.
fn taken_members(one: Declared<'_>, other: &Desired) -> impl Iterator<Item = String> {
    other.memberships.iter().filter_map(move |(group, theirs)| {
        let ours = one.desired.memberships.get(group);
        let lost = |member: &&String| {
            one.takes_everything(member, other)
                && !ours.is_some_and(|ours| ours.members.contains_key(*member))
        };
        let found = theirs.members.keys().find(lost);
        found.map(|_| format!("members of \"{group}\""))
    })
}
