//! Determines where two policies conflict. Pure.
//!
//! Roles belong to the server, everything else to a database. Two policies overlap where both decide: both define a
//! role, both own a schema, both declare the privileges of a role in a schema, one manages all members of a group
//! and the other declares members of it, or both declare a member with different options. They also overlap where one
//! would revoke what the other grants ([`taken`]). Any other grant to a role that another policy defines is not an overlap.

mod index;
mod taken;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use stanchion_roles::expand::{Desired, MemberOptions, Membership};
use stanchion_roles::plan::Mode;

use index::Index;
use taken::{taken_defaults, taken_grants, taken_members};

/// What a policy declares, and which changes it makes for that.
#[derive(Clone, Copy)]
pub(crate) struct Declared<'a> {
    pub(crate) desired: &'a Desired,
    pub(crate) mode: Mode,
}

/// How many privileges in schemas an overlap names: many roles in many schemas would be a long list.
const NAMED: usize = 1000;

/// What both declare, as text for people; empty if there is no overlap. The time that it takes grows with the number of rules,
/// not with its square.
pub(crate) fn overlap(one: Declared<'_>, other: Declared<'_>, same_database: bool) -> Vec<String> {
    let (ours, theirs) = (one.desired, other.desired);
    // What is about a role that both define is reported by that.
    let both_define: BTreeSet<&str> = defined(ours).intersection(&defined(theirs)).copied().collect();
    let roles = both_define.iter().map(|role| format!("role \"{role}\""));
    let mut found: Vec<String> = roles.collect();
    found.extend(members(one, other, &both_define));
    let mut taken: BTreeSet<String> = taken_members(one, theirs, &both_define)
        .chain(taken_members(other, ours, &both_define))
        .collect();
    if same_database {
        let schemas = ours
            .schemas
            .keys()
            .filter(|name| theirs.schemas.contains_key(*name));
        found.extend(schemas.map(|name| format!("schema \"{name}\"")));
        found.extend(privileges(ours, theirs, &both_define));
        let alone: BTreeSet<_> = exclusive(ours, theirs, &both_define)
            .chain(exclusive(theirs, ours, &both_define))
            .collect();
        found.extend(alone);
        found.extend(defaults(ours, theirs));
        let [one, other] = [one, other].map(Index::of);
        for (taking, granting) in [(&one, theirs), (&other, ours)] {
            taken.extend(taken_grants(taking, granting, &both_define));
            taken.extend(taken_defaults(taking, granting, &both_define));
        }
    }
    for text in &found {
        taken.remove(text);
    }
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

fn members(one: Declared<'_>, other: Declared<'_>, both_define: &BTreeSet<&str>) -> Vec<String> {
    // Additive mode neither takes an option nor changes one.
    let changes_options = one.mode != Mode::Additive && other.mode != Mode::Additive;
    let (one, other) = (one.desired, other.desired);
    let groups = one.memberships.iter().filter_map(|(group, ours)| {
        let theirs = other.memberships.get(group)?;
        let fights = (ours.exhaustive && !theirs.members.is_empty())
            || (theirs.exhaustive && !ours.members.is_empty())
            || (changes_options && differ(ours, theirs));
        (fights && !both_define.contains(group.as_str())).then(|| format!("members of \"{group}\""))
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

fn privileges<'a>(
    one: &'a Desired,
    other: &'a Desired,
    both_define: &'a BTreeSet<&'a str>,
) -> impl Iterator<Item = String> + use<'a> {
    let schemas: BTreeSet<&str> = one.scope.privilege_schemas().collect();
    let mut shared: Vec<String> = other
        .scope
        .privilege_schemas()
        .filter(|name| schemas.contains(name))
        .map(|schema| format!("in schema \"{schema}\""))
        .collect();
    if one.scope.database && other.scope.database {
        shared.push("on the database".to_owned());
    }
    let takes = |desired: &Desired, role: &String| {
        let role = desired.roles.get(role);
        role.is_some_and(|role| !role.preserve_undeclared_grants)
    };
    let roles = one.scope.roles.intersection(&other.scope.roles);
    let roles = roles
        .filter(move |role| !both_define.contains(role.as_str()) && (takes(one, role) || takes(other, role)));
    let places = roles.flat_map(move |role| {
        let of_role = |place| format!("privileges of \"{role}\" {place}");
        shared.iter().map(of_role).collect::<Vec<_>>()
    });
    places.take(NAMED)
}

/// Roles that hold nothing but what one policy declares, and to which the other one grants something.
fn exclusive(
    one: &Desired,
    granting: &Desired,
    both_define: &BTreeSet<&str>,
) -> impl Iterator<Item = String> {
    let grantees: BTreeSet<&str> = granting.grants.keys().map(|key| key.grantee.as_str()).collect();
    let alone = one.roles.iter().filter(|(_, role)| role.exclusive);
    let alone = alone.map(|(name, _)| name.as_str());
    alone
        .filter(move |name| !both_define.contains(name) && grantees.contains(name))
        .map(|name| format!("everything that \"{name}\" holds"))
}

/// Global default privileges have no schema that separates them.
fn defaults(one: &Desired, other: &Desired) -> Vec<String> {
    let everywhere = one.default_privileges.keys().filter(|key| key.schema.is_none());
    let both = everywhere.filter(|key| other.default_privileges.contains_key(key));
    both.map(|key| format!("default privileges of \"{}\" for \"{}\"", key.owner, key.grantee))
        .collect()
}
