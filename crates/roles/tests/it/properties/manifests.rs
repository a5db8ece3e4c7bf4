//! Random manifests. Each declares some of the roles and mentions some of the schemas.

use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use stanchion_roles::manifest::{Manifest, Severity, check};

use super::database::{MANAGED, OBJECTS, anybody, managed, schema, some_of};

/// A rule as text, and the roles that must be declared for it.
type Rule = (Vec<&'static str>, String);

fn role() -> impl Strategy<Value = String> {
    let extras = subsequence(
        vec![
            "login: true",
            "inherit: false",
            "connection_limit: 2",
            "comment: ours",
            "config: {search_path: 'a, b', work_mem: 8MB}",
            "password_valid_until: '2031-05-05T05:05:05.25+03:00'",
            "exclusive: true",
        ],
        0..=3,
    );
    extras.prop_map(|extras| extras.join(", "))
}

fn grant() -> impl Strategy<Value = Rule> {
    let on_object = (schema(), select(&OBJECTS[..]), 0..4u8).prop_flat_map(
        |(schema, (kind, _, name, privileges), selector)| {
            let target = match selector {
                0 => format!("{{type: {kind}, schema: {schema}, name: '*'}}"),
                1 => format!("{{type: {kind}, schema: {schema}, name: '*', except: ['{name}']}}"),
                _ => format!("{{type: {kind}, schema: {schema}, name: '{name}'}}"),
            };
            (Just(target), some_of(privileges))
        },
    );
    let on_schema = (schema(), some_of(&["CREATE", "USAGE"]))
        .prop_map(|(schema, privileges)| (format!("{{type: schema, name: {schema}}}"), privileges));
    let on_columns = (schema(), some_of(&["SELECT", "UPDATE"])).prop_map(|(schema, privileges)| {
        (
            format!("{{type: table, schema: {schema}, name: t1, columns: [i]}}"),
            privileges,
        )
    });
    (
        managed(),
        prop_oneof![6 => on_object, 2 => on_schema, 2 => on_columns],
        addition(),
    )
        .prop_map(|(role, (object, privileges), rule)| {
            let text = format!("{{role: {role}, privileges: [{privileges}], object: {object}{rule}}}");
            (vec![role], text)
        })
}

/// What a rule says beyond its privileges.
fn addition() -> impl Strategy<Value = &'static str> {
    select(vec![
        "",
        "",
        "",
        ", with_grant_option: true",
        ", with_grant_option: false",
        ", ensure: absent",
    ])
}

fn default_privilege() -> impl Strategy<Value = Rule> {
    let scope = prop_oneof![
        3 => schema().prop_map(|schema| format!("schema: {schema}")),
        1 => Just("scope: {type: global}".to_owned()),
    ];
    let kind = select(vec![
        ("table", "SELECT"),
        ("view", "DELETE"),
        ("sequence", "USAGE"),
        ("function", "EXECUTE"),
        ("type", "USAGE"),
    ]);
    (scope, anybody(), managed(), kind, addition()).prop_map(|(scope, owner, role, (kind, privilege), rule)| {
        let text = format!("{{{scope}, owner: {owner}, grant: [{{role: {role}, privileges: [{privilege}], on_type: {kind}{rule}}}]}}");
        (vec![role], text)
    })
}

/// A member is always later in the alphabet than its group: no circles.
fn membership() -> impl Strategy<Value = Rule> {
    (0..MANAGED.len() - 1, any::<[bool; 3]>()).prop_flat_map(|(group, [inherit, admin, set])| {
        select(MANAGED[group + 1..].to_vec()).prop_map(move |member| {
            let group = MANAGED[group];
            let text = format!(
                "{{role: {group}, members: [{{name: {member}, inherit: {inherit}, admin: {admin}, set: {set}}}]}}"
            );
            (vec![group, member], text)
        })
    })
}

fn flow(items: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", items.into_iter().collect::<Vec<_>>().join(", "))
}

pub(super) fn manifest() -> impl Strategy<Value = String> {
    let schemas = btree_set(schema(), 0..=3).prop_flat_map(|names| {
        let owners = vec(option::of(anybody()), names.len());
        (Just(names), owners).prop_map(|(names, owners)| {
            let schemas = names.into_iter().zip(owners).map(|(name, owner)| {
                let owner = owner.map(|owner| format!(", owner: {owner}")).unwrap_or_default();
                format!("{{name: {name}{owner}}}")
            });
            flow(schemas)
        })
    });
    let declared = prop_oneof![
        2 => Just(MANAGED.to_vec()),
        1 => subsequence(MANAGED.to_vec(), 1..MANAGED.len()),
    ];
    let all = (
        declared,
        vec(role(), MANAGED.len()),
        schemas,
        vec(grant(), 0..8),
        vec(default_privilege(), 0..4),
        vec(membership(), 0..3),
    );
    all.prop_map(|(declared, roles, schemas, grants, defaults, memberships)| {
        let roles = declared.iter().zip(roles).map(|(name, extras)| {
            let comma = if extras.is_empty() { "" } else { ", " };
            format!("{{name: {name}{comma}{extras}}}")
        });
        let possible = |rules: Vec<Rule>| {
            flow(
                rules
                    .into_iter()
                    .filter(|(mentioned, _)| mentioned.iter().all(|role| declared.contains(role)))
                    .map(|(_, text)| text),
            )
        };
        format!(
            "roles: {}\nschemas: {schemas}\ngrants: {}\ndefault_privileges: {}\nmemberships: {}",
            flow(roles),
            possible(grants),
            possible(defaults),
            possible(memberships)
        )
    })
    .prop_filter("contradictory", |text| {
        let node = stanchion_roles::yaml::parse(text).unwrap();
        let manifest: Manifest = stanchion_roles::yaml::from_node(&node).unwrap().0;
        check(&manifest)
            .iter()
            .all(|finding| finding.severity == Severity::Warning)
    })
}
