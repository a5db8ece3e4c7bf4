//! Determines where two policies conflict. Pure.
//!
//! Roles belong to the server, everything else to a database. Two policies overlap where both decide: both define a
//! role, both own a schema, both declare the privileges of a role in a schema, one manages all members of a group
//! and the other declares members of it, or both declare a member with different options. They also overlap where one
//! would revoke what the other grants ([`taken`]). Any other grant to a role that another policy defines is not an overlap.

mod taken;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use stanchion_roles::expand::{Desired, MemberOptions, Membership};
use stanchion_roles::plan::Mode;
use taken::{taken_defaults, taken_grants, taken_members};

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
    found.extend(members(one, other));
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

fn members(one: Declared<'_>, other: Declared<'_>) -> Vec<String> {
    // Additive mode neither takes an option nor changes one.
    let changes_options = one.mode != Mode::Additive && other.mode != Mode::Additive;
    let (one, other) = (one.desired, other.desired);
    let groups = one.memberships.iter().filter_map(|(group, ours)| {
        let theirs = other.memberships.get(group)?;
        let fights = (ours.exhaustive && !theirs.members.is_empty())
            || (theirs.exhaustive && !ours.members.is_empty())
            || (changes_options && differ(ours, theirs));
        // Two definitions of the group are reported already.
        let both_define = defined(one).contains(group.as_str()) && defined(other).contains(group.as_str());
        (fights && !both_define).then(|| format!("members of \"{group}\""))
    });
    groups.collect()
}

/// Whether a member of both has different options in them.
fn differ(one: &Membership, other: &Membership) -> bool {
    let contradict = |ours: &MemberOptions, theirs: &MemberOptions| {
        (ours.inherit, ours.admin) != (theirs.inherit, theirs.admin)
            || ours
                .set
                .zip(theirs.set)
                .is_some_and(|(ours, theirs)| ours != theirs)
    };
    let mut both = one
        .members
        .iter()
        .filter_map(|(name, ours)| Some((ours, other.members.get(name)?)));
    both.any(|(ours, theirs)| contradict(ours, theirs))
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
