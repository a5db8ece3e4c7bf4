//! Which policies overlap, and over what.

use stanchion_roles::expand::expand;
use stanchion_roles::manifest::{Strictness, load};

use super::*;

fn desired(text: &str) -> Desired {
    expand(&load(text, Strictness::Lenient).unwrap().value)
}

fn between(one: &str, other: &str, same_database: bool) -> Vec<String> {
    between_in(Mode::Authoritative, one, other, same_database)
}

fn between_in(mode: Mode, one: &str, other: &str, same_database: bool) -> Vec<String> {
    let (one, other) = (desired(one), desired(other));
    let [one, other] = [&one, &other].map(|desired| Declared { desired, mode });
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

#[test]
fn different_options_of_a_member_overlap() {
    let joins =
        |options: &str| format!("memberships: [{{role: g, members: [{{name: x{options}}}, {{name: y}}]}}]\n");
    for (one, other) in [
        (", admin: true", ""),
        (", inherit: false", ""),
        (", set: true", ", set: false"),
    ] {
        let (one, other) = (joins(one), joins(other));
        assert_eq!(between(&one, &other, false), ["members of \"g\""], "{one}{other}");
        assert_eq!(
            between_in(Mode::Adopt, &one, &other, false).len(),
            1,
            "{one}{other}"
        );
        assert!(
            between_in(Mode::Additive, &one, &other, false).is_empty(),
            "{one}{other}"
        );
    }
    for (one, other) in [(", inherit: true, admin: false", ""), (", set: true", "")] {
        assert!(
            between(&joins(one), &joins(other), false).is_empty(),
            "{one} {other}"
        );
    }
    let another = "memberships: [{role: g, members: [{name: z, admin: true}]}]\n";
    assert!(between(&joins(""), another, false).is_empty());
}

#[test]
fn a_grant_option_outside_of_schemas_that_another_policy_would_revoke_overlaps() {
    for (kind, privilege, name, spelled) in [
        ("foreign_server", "USAGE", "srv", "srv"),
        ("language", "USAGE", "plpgsql", "plpgsql"),
        ("parameter", "SET", "log_statement", "log_Statement"),
    ] {
        let grant = |name: &str, rest: &str| {
            let object = format!("{{type: {kind}, name: {name}}}");
            format!("grants: [{{role: r, privileges: [{privilege}], object: {object}{rest}}}]\n")
        };
        let manages = format!("roles: [{{name: r}}]\n{}", grant(name, ""));
        let passes_on = grant(spelled, ", with_grant_option: true");
        let overlap = [format!("privileges of \"r\" on {kind} \"{spelled}\"")];
        assert_eq!(between(&manages, &passes_on, true), overlap);
        assert!(between(&manages, &passes_on, false).is_empty());
        assert!(between(&manages, &grant(spelled, ""), true).is_empty());
        // Without a rule of its own, a policy leaves such an object alone.
        assert!(between("roles: [{name: r}]", &passes_on, true).is_empty());
        assert!(between_in(Mode::Adopt, &manages, &passes_on, true).is_empty());
    }
}

#[test]
fn adopt_mode_takes_only_the_grant_options_that_it_excludes() {
    let grant = |rest: &str| {
        format!("grants: [{{role: r, privileges: [USAGE], object: {{type: schema, name: s}}{rest}}}]\n")
    };
    let default = |rest: &str| {
        format!(
            "default_privileges: [{{schema: s, owner: o, grant: [{{role: r, privileges: [SELECT], on_type: table{rest}}}]}}]\n"
        )
    };
    let (with, without) = (", with_grant_option: true", ", with_grant_option: false");
    for rule in [&grant as &dyn Fn(&str) -> String, &default] {
        let manages = |rest: &str| format!("roles: [{{name: r}}]\n{}", rule(rest));
        let count = |mode, rest| between_in(mode, &manages(rest), &rule(with), true).len();
        assert_eq!(count(Mode::Authoritative, ""), 1);
        assert_eq!(count(Mode::Adopt, ""), 0);
        assert_eq!(count(Mode::Adopt, without), 1);
        assert_eq!(count(Mode::Additive, without), 0);
        // What a policy excludes, it takes from every role.
        assert_eq!(between(&rule(without), &rule(with), true).len(), 1);
    }
}

#[test]
fn what_one_excludes_and_the_other_grants_overlaps() {
    let rule = |object: &str, rest: &str| {
        format!("grants: [{{role: r, privileges: [SELECT], object: {{schema: s, {object}}}{rest}}}]\n")
    };
    let (table, all) = ("type: table, name: t", "type: table, name: '*'");
    let overlap = ["privileges of \"r\" in schema \"s\""];
    for (excluded, granted) in [
        (table, table),
        (table, all),
        (all, table),
        (all, "type: table, name: '*', except: [u]"),
        ("type: view, name: t", table),
        (
            "type: table, name: t, columns: [a, b]",
            "type: table, name: t, columns: [b]",
        ),
    ] {
        let (one, other) = (rule(excluded, ", ensure: absent"), rule(granted, ""));
        assert_eq!(between(&one, &other, true), overlap, "{excluded} {granted}");
        assert!(between_in(Mode::Additive, &one, &other, true).is_empty());
    }
    for (excluded, granted) in [
        (table, "type: table, name: u"),
        (table, "type: table, name: '*', except: [t]"),
        // A REVOKE on a table gives the columns back.
        (table, "type: table, name: t, columns: [a]"),
        (
            "type: table, name: t, columns: [a]",
            "type: table, name: t, columns: [b]",
        ),
    ] {
        let (one, other) = (rule(excluded, ", ensure: absent"), rule(granted, ""));
        assert!(between(&one, &other, true).is_empty(), "{excluded} {granted}");
    }
}

#[test]
fn privileges_on_a_relation_do_not_cover_its_columns() {
    let on = |columns: &str| {
        format!("{{role: r, privileges: [SELECT], object: {{type: table, schema: s, name: t{columns}}}}}")
    };
    let manages = format!(
        "roles: [{{name: r}}]\ngrants: [{}, {}]\n",
        on(""),
        on(", columns: [a]")
    );
    let grants = |columns: &str| format!("grants: [{}]\n", on(columns));
    assert!(between(&manages, &grants(", columns: [a]"), true).is_empty());
    assert_eq!(between(&manages, &grants(", columns: [b]"), true).len(), 1);
}

/// A square of these numbers of rules would take minutes.
#[test]
fn large_policies_are_compared_with_many_others() {
    let manages = |from: usize, table: &str| {
        let grant = |number: usize| {
            format!(
                "{{role: r{number}, privileges: [SELECT], object: {{type: {table}, schema: s, name: t{number}}}}}"
            )
        };
        let numbers = || from..from + 4096;
        let roles: Vec<_> = numbers()
            .map(|number| format!("{{name: r{number}, external: true, exclusive: true}}"))
            .collect();
        let members: Vec<_> = numbers()
            .map(|number| format!("{{role: r{number}, members: [{{name: m}}]}}"))
            .collect();
        let grants: Vec<_> = numbers().map(grant).collect();
        let parts = [("roles", roles), ("memberships", members), ("grants", grants)];
        let parts = parts.map(|(name, list)| format!("{name}: [{}]", list.join(", ")));
        desired(&parts.join("\n"))
    };
    let (one, other) = (manages(0, "table"), manages(4096, "table"));
    let [one, other] = [&one, &other].map(|desired| Declared {
        desired,
        mode: Mode::Authoritative,
    });
    for _ in 0..20 {
        assert!(overlap(one, other, true).is_empty());
    }
    // Both manage the same roles in the same schema, and grant the same.
    assert_eq!(overlap(one, one, true).len(), NAMED + 4096);
}
