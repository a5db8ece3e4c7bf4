//! Which policies overlap, and over what.

use stanchion_roles::expand::expand;
use stanchion_roles::manifest::{Strictness, load};

use super::*;

fn desired(text: &str) -> Desired {
    expand(&load(text, Strictness::Lenient).unwrap().value)
}

fn between(one: &str, other: &str, same_database: bool) -> Vec<String> {
    let (one, other) = (desired(one), desired(other));
    let [one, other] = [&one, &other].map(|desired| Declared {
        desired,
        mode: Mode::Authoritative,
    });
    let found = overlap(one, other, same_database);
    let mut back = overlap(other, one, same_database);
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

#[test]
fn a_grant_that_another_policy_would_revoke_overlaps() {
    let manages = "roles: [{name: r}]\ngrants: [{role: r, privileges: [USAGE], object: {type: schema, name: s}}, \
                   {role: r, privileges: [SELECT], object: {type: table, schema: s, name: '*'}}]\n";
    let grant = |rule: &str| format!("grants: [{{role: r, {rule}}}]\n");
    let overlap = ["privileges of \"r\" in schema \"s\""];
    for rule in [
        "privileges: [CREATE], object: {type: schema, name: s}",
        "privileges: [USAGE], with_grant_option: true, object: {type: schema, name: s}",
        "privileges: [INSERT], object: {type: table, schema: s, name: t}",
        "privileges: [SELECT], object: {type: view, schema: s, name: '*'}",
    ] {
        assert_eq!(between(manages, &grant(rule), true), overlap, "{rule}");
        assert!(between(manages, &grant(rule), false).is_empty(), "{rule}");
    }
    for rule in [
        "privileges: [SELECT], object: {type: table, schema: s, name: t}",
        "privileges: [SELECT], object: {type: table, schema: s, name: '*', except: [t]}",
        "privileges: [UPDATE], object: {type: table, schema: s, name: t, columns: [c]}",
        "privileges: [CREATE], object: {type: schema, name: other}",
    ] {
        assert!(between(manages, &grant(rule), true).is_empty(), "{rule}");
    }
    let kept = manages.replace("{name: r}", "{name: r, preserve_undeclared_grants: true}");
    assert!(
        between(
            &kept,
            &grant("privileges: [CREATE], object: {type: schema, name: s}"),
            true
        )
        .is_empty()
    );
}

#[test]
fn additive_mode_revokes_nothing_and_overlaps_with_no_grant() {
    let manages = desired(
        "roles: [{name: r}]\ngrants: [{role: r, privileges: [USAGE], object: {type: schema, name: s}}]\n",
    );
    let grants = desired("grants: [{role: r, privileges: [CREATE], object: {type: schema, name: s}}]\n");
    let found = |mode| {
        let [one, other] = [&manages, &grants].map(|desired| Declared { desired, mode });
        overlap(one, other, true)
    };
    assert!(found(Mode::Additive).is_empty());
    assert_eq!(found(Mode::Adopt).len(), 1);
}

#[test]
fn what_joins_an_exclusive_role_to_a_group_overlaps() {
    let exclusive = "roles: [{name: r, exclusive: true}]\n";
    let joins = "memberships: [{role: g, members: [{name: r}]}]\n";
    assert_eq!(between(exclusive, joins, false), ["members of \"g\""]);
    assert!(between(&format!("{exclusive}{joins}"), joins, false).is_empty());
    assert!(between("roles: [{name: r}]\n", joins, false).is_empty());
}

#[test]
fn default_privileges_that_another_policy_would_revoke_overlap() {
    let default = "default_privileges: [{schema: t, owner: o, grant: [{role: r, privileges: [SELECT], on_type: table}]}]\n";
    let overlap = ["default privileges of \"o\" for \"r\""];
    assert_eq!(
        between("roles: [{name: r, exclusive: true}]\n", default, true),
        overlap
    );
    assert_eq!(
        between("roles: [{name: r}]\nschemas: [{name: t}]\n", default, true),
        overlap
    );
    assert!(between("roles: [{name: r}]\n", default, true).is_empty());
}
