//! Determines where two policies conflict. Pure.
//!
//! Roles belong to the server, everything else to a database. Two policies overlap where both decide: both define a
//! role, both own a schema, both declare the privileges of a role in a schema, or one manages all members of a group
//! and the other declares members of it. A grant to a role that another policy defines is not an overlap.

use std::collections::BTreeSet;

use stanchion_roles::expand::Desired;

/// What both declare, as text for people; empty if there is no overlap.
pub(crate) fn overlap(one: &Desired, other: &Desired, same_database: bool) -> Vec<String> {
    let mut found: Vec<String> = defined(one)
        .intersection(&defined(other))
        .map(|role| format!("role \"{role}\""))
        .collect();
    found.extend(members(one, other));
    if same_database {
        let schemas = one
            .schemas
            .keys()
            .filter(|name| other.schemas.contains_key(*name));
        found.extend(schemas.map(|name| format!("schema \"{name}\"")));
        found.extend(privileges(one, other));
        found.extend(defaults(one, other));
    }
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

#[cfg(test)]
mod tests {
    use stanchion_roles::expand::expand;
    use stanchion_roles::manifest::{Strictness, load};

    use super::*;

    fn desired(text: &str) -> Desired {
        expand(&load(text, Strictness::Lenient).unwrap().value)
    }

    fn between(one: &str, other: &str, same_database: bool) -> Vec<String> {
        let (one, other) = (desired(one), desired(other));
        let found = overlap(&one, &other, same_database);
        let mut back = overlap(&other, &one, same_database);
        let mut sorted = found.clone();
        sorted.sort();
        back.sort();
        assert_eq!(sorted, back, "an overlap is mutual");
        found
    }

    #[test]
    fn a_role_belongs_to_the_server() {
        let (one, other) = ("roles: [{name: a}]", "roles: [{name: a}]");
        assert_eq!(between(one, other, false), ["role \"a\""]);
        assert_eq!(between(one, "retirements: [{role: a}]", false), ["role \"a\""]);
        assert!(between(one, "roles: [{name: b}]", true).is_empty());
    }

    #[test]
    fn a_schema_belongs_to_the_database() {
        let (one, other) = ("schemas: [{name: s}]", "schemas: [{name: s}]");
        assert_eq!(between(one, other, true), ["schema \"s\""]);
        assert!(between(one, other, false).is_empty());
    }

    #[test]
    fn granting_in_one_schema_to_different_roles_is_no_overlap() {
        let grant = |role: &str| {
            format!(
                "roles: [{{name: {role}}}]\ngrants: [{{role: {role}, privileges: [USAGE], object: {{type: schema, name: s}}}}]\n"
            )
        };
        assert!(between(&grant("a"), &grant("b"), true).is_empty());
    }

    #[test]
    fn two_who_decide_what_a_role_holds_overlap() {
        let grants = "grants: [{role: a, privileges: [USAGE], object: {type: schema, name: s}}]\n";
        let defines = format!("roles: [{{name: a}}]\n{grants}");
        let manages = format!("roles: [{{name: a, external: true}}]\n{grants}");
        let overlap = ["privileges of \"a\" in schema \"s\""];
        assert_eq!(between(&defines, &manages, true), overlap);
        assert_eq!(between(&manages, &manages, true), overlap);
        assert!(between(&defines, &manages, false).is_empty());
        assert!(
            between(&defines, grants, true).is_empty(),
            "only granting is no overlap"
        );
        let elsewhere = "roles: [{name: a, external: true}]\ngrants: [{role: a, privileges: [USAGE], object: {type: schema, name: t}}]\n";
        assert!(between(&defines, elsewhere, true).is_empty());
    }

    #[test]
    fn the_last_word_on_members_is_one() {
        let defines = "roles: [{name: g}]\n";
        let joins = "memberships: [{role: g, members: [{name: x}]}]\n";
        assert_eq!(between(defines, joins, false), ["members of \"g\""]);
        assert!(between(joins, joins, false).is_empty());
    }
}
