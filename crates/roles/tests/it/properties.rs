//! Random databases and random manifests. Each step disturbs the database at random and applies a random manifest
//! to whatever that left: after it, nothing is left to do, and nobody who was not mentioned has lost anything.

use std::collections::BTreeSet;

use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use stanchion_roles::apply;
use stanchion_roles::manifest::{Manifest, Severity, check};
use stanchion_roles::plan::Mode;
use stanchion_roles::render;
use stanchion_testkit::postgres::{Version, versions};

use crate::support::Lab;

/// Roles that manifests declare; the others are nobody's business.
const MANAGED: [&str; 4] = ["P_a", "P_b", "P_c", "P_d"];
const OTHERS: [&str; 2] = ["P_x", "P_y"];
const SCHEMAS: [&str; 3] = ["s1", "s2", "s3"];

/// Kind, name in SQL, name in a manifest, privileges.
const OBJECTS: [(&str, &str, &str, &[&str]); 6] = [
    ("table", "t1", "t1", &["SELECT", "INSERT", "UPDATE", "TRIGGER"]),
    ("table", "t2", "t2", &["SELECT", "DELETE", "TRUNCATE"]),
    ("view", "v1", "v1", &["SELECT", "UPDATE"]),
    ("sequence", "q1", "q1", &["SELECT", "USAGE"]),
    ("function", "f1(int, text)", "f1(a integer, b text)", &["EXECUTE"]),
    ("type", "color", "color", &["USAGE"]),
];

const SETUP: &str = "
    CREATE ROLE P_a; CREATE ROLE P_b LOGIN; CREATE ROLE P_c; CREATE ROLE P_d; CREATE ROLE P_x; CREATE ROLE P_y;
    DO $$ DECLARE s text; BEGIN FOREACH s IN ARRAY ARRAY['s1', 's2', 's3'] LOOP
      EXECUTE format('CREATE SCHEMA %I; GRANT USAGE ON SCHEMA %1$I TO PUBLIC; CREATE TYPE %1$I.color AS ENUM (''red'');
        CREATE TABLE %1$I.t1 (i int, j text); CREATE TABLE %1$I.t2 (i int) PARTITION BY RANGE (i);
        CREATE VIEW %1$I.v1 AS SELECT 1 AS one; CREATE SEQUENCE %1$I.q1;
        CREATE FUNCTION %1$I.f1(a int, b text) RETURNS int LANGUAGE sql AS ''SELECT 1''', s);
    END LOOP; END $$";

fn anybody() -> impl Strategy<Value = &'static str> {
    select([&MANAGED[..], &OTHERS[..]].concat())
}

fn managed() -> impl Strategy<Value = &'static str> {
    select(&MANAGED[..])
}

fn schema() -> impl Strategy<Value = &'static str> {
    select(&SCHEMAS[..])
}

fn some_of(privileges: &'static [&'static str]) -> impl Strategy<Value = String> {
    subsequence(privileges, 1..=privileges.len()).prop_map(|chosen| chosen.join(", "))
}

fn keyword(kind: &str) -> &'static str {
    match kind {
        "sequence" => "SEQUENCE",
        "function" => "FUNCTION",
        "type" => "TYPE",
        _ => "TABLE",
    }
}

/// A statement that somebody else runs; it may fail.
fn disturbance() -> impl Strategy<Value = String> {
    let object = || {
        (schema(), select(&OBJECTS[..])).prop_flat_map(|(schema, (kind, sql, _, privileges))| {
            let place = format!("{} {schema}.{sql}", keyword(kind));
            (Just(place), some_of(privileges))
        })
    };
    prop_oneof![
        4 => (object(), anybody(), any::<bool>()).prop_map(|((place, privileges), role, option)| {
            format!("GRANT {privileges} ON {place} TO {role}{}", if option { " WITH GRANT OPTION" } else { "" })
        }),
        2 => (object(), anybody(), anybody()).prop_map(|((place, privileges), giver, role)| {
            format!("SET ROLE {giver}; GRANT {privileges} ON {place} TO {role}; RESET ROLE")
        }),
        1 => (object(), anybody()).prop_map(|((place, privileges), role)| format!("REVOKE {privileges} ON {place} FROM {role} CASCADE")),
        1 => object().prop_map(|(place, privileges)| format!("REVOKE {privileges} ON {place} FROM PUBLIC")),
        2 => (anybody(), anybody(), any::<bool>()).prop_map(|(group, member, admin)| {
            format!("GRANT {group} TO {member}{}", if admin { " WITH ADMIN OPTION" } else { "" })
        }),
        2 => (schema(), anybody()).prop_map(|(schema, owner)| format!("ALTER SCHEMA {schema} OWNER TO {owner}")),
        1 => (schema(), anybody()).prop_map(|(schema, owner)| format!("ALTER TABLE {schema}.t1 OWNER TO {owner}")),
        1 => (schema(), anybody()).prop_map(|(schema, role)| format!("GRANT CREATE, USAGE ON SCHEMA {schema} TO {role}")),
        1 => (schema(), anybody()).prop_map(|(schema, role)| format!("REVOKE ALL ON SCHEMA {schema} FROM {role}")),
        1 => (schema(), anybody()).prop_map(|(schema, role)| format!("GRANT SELECT (i), UPDATE (j) ON {schema}.t1 TO {role}")),
        2 => (option::of(schema()), anybody(), anybody()).prop_map(|(schema, owner, role)| {
            let place = schema.map(|schema| format!(" IN SCHEMA {schema}")).unwrap_or_default();
            format!("ALTER DEFAULT PRIVILEGES FOR ROLE {owner}{place} GRANT SELECT, INSERT ON TABLES TO {role}")
        }),
        1 => managed().prop_map(|role| format!("ALTER ROLE {role} CREATEDB NOINHERIT CONNECTION LIMIT 7 SET search_path = a, b")),
        1 => managed().prop_map(|role| format!("ALTER ROLE {role} SET search_path = a, \"B\"; COMMENT ON ROLE {role} IS 'odd'")),
    ]
}

fn flow(items: &[String]) -> String {
    format!("[{}]", items.join(", "))
}

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

fn grant() -> impl Strategy<Value = String> {
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
    let rule = select(vec![
        "",
        "",
        "",
        ", with_grant_option: true",
        ", with_grant_option: false",
        ", ensure: absent",
    ]);
    (
        managed(),
        prop_oneof![6 => on_object, 2 => on_schema, 1 => on_columns],
        rule,
    )
        .prop_map(|(role, (object, privileges), rule)| {
            format!("{{role: {role}, privileges: [{privileges}], object: {object}{rule}}}")
        })
}

fn default_privilege() -> impl Strategy<Value = String> {
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
    (scope, anybody(), managed(), kind, any::<bool>()).prop_map(|(scope, owner, role, (kind, privilege), present)| {
        let ensure = if present { "" } else { ", ensure: absent" };
        format!("{{{scope}, owner: {owner}, grant: [{{role: {role}, privileges: [{privilege}], on_type: {kind}{ensure}}}]}}")
    })
}

/// A member is always later in the alphabet than its group: no circles.
fn membership() -> impl Strategy<Value = String> {
    (0..MANAGED.len() - 1, any::<[bool; 3]>()).prop_flat_map(|(group, [inherit, admin, set])| {
        select(MANAGED[group + 1..].to_vec()).prop_map(move |member| {
            format!(
                "{{role: {}, members: [{{name: {member}, inherit: {inherit}, admin: {admin}, set: {set}}}]}}",
                MANAGED[group]
            )
        })
    })
}

fn manifest() -> impl Strategy<Value = String> {
    let schemas = btree_set(schema(), 0..=3).prop_flat_map(|names| {
        let owners = vec(option::of(anybody()), names.len());
        (Just(names), owners).prop_map(|(names, owners)| {
            names
                .into_iter()
                .zip(owners)
                .map(|(name, owner)| {
                    let owner = owner.map(|owner| format!(", owner: {owner}")).unwrap_or_default();
                    format!("{{name: {name}{owner}}}")
                })
                .collect::<Vec<_>>()
        })
    });
    let roles = vec(role(), MANAGED.len());
    (
        roles,
        schemas,
        vec(grant(), 0..8),
        vec(default_privilege(), 0..4),
        vec(membership(), 0..3),
    )
        .prop_map(|(roles, schemas, grants, defaults, memberships)| {
            let roles: Vec<_> = MANAGED
                .iter()
                .zip(roles)
                .map(|(name, extras)| {
                    format!(
                        "{{name: {name}{}{extras}}}",
                        if extras.is_empty() { "" } else { ", " }
                    )
                })
                .collect();
            format!(
                "roles: {}\nschemas: {}\ngrants: {}\ndefault_privileges: {}\nmemberships: {}",
                flow(&roles),
                flow(&schemas),
                flow(&grants),
                flow(&defaults),
                flow(&memberships)
            )
        })
}

type Step = (Vec<String>, String, bool);

fn step() -> impl Strategy<Value = Step> {
    let valid = manifest().prop_filter("contradictory", |text| {
        let manifest: Manifest = serde_saphyr_from(text);
        check(&manifest)
            .iter()
            .all(|finding| finding.severity == Severity::Warning)
    });
    (vec(disturbance(), 0..8), valid, any::<bool>())
}

fn serde_saphyr_from(text: &str) -> Manifest {
    let node = stanchion_roles::yaml::parse(text).unwrap();
    stanchion_roles::yaml::from_node(&node).unwrap().0
}

/// Object, grantee and privilege of every ACL entry.
const HELD: &str = "
    SELECT c.oid::regclass || ' ' || a.grantee::regrole || ' ' || a.privilege_type FROM pg_class c, aclexplode(c.relacl) a WHERE c.relnamespace::regnamespace::text LIKE 's_' AND a.grantee <> 0
    UNION ALL SELECT p.oid::regprocedure || ' ' || a.grantee::regrole || ' ' || a.privilege_type FROM pg_proc p, aclexplode(p.proacl) a WHERE p.pronamespace::regnamespace::text LIKE 's_' AND a.grantee <> 0
    UNION ALL SELECT n.nspname || ' ' || a.grantee::regrole || ' ' || a.privilege_type FROM pg_namespace n, aclexplode(n.nspacl) a WHERE n.nspname LIKE 's_' AND a.grantee NOT IN (0, n.nspowner)
    UNION ALL SELECT 'member ' || m.roleid::regrole || ' ' || m.member::regrole FROM pg_auth_members m WHERE m.member::regrole::text LIKE 'P\\_%'";

async fn held(lab: &Lab) -> BTreeSet<String> {
    lab.database
        .query(&lab.text(HELD))
        .await
        .iter()
        .filter_map(|row| Some(lab.generic(row.first()?.as_ref()?)))
        .collect()
}

async fn run(lab: &Lab, (disturbances, manifest, additive): Step) -> Result<(), TestCaseError> {
    for sql in &disturbances {
        let server = lab.database.server();
        let _ = server.try_query(lab.database.name(), &lab.text(sql)).await;
    }
    let mode = if additive {
        Mode::Additive
    } else {
        Mode::Authoritative
    };
    let before = held(lab).await;
    let plan = lab.plan(&manifest, mode).await;
    if !plan.blockers.is_empty() {
        let refused = lab.apply_as(&manifest, mode).await;
        prop_assert!(matches!(refused, Err(apply::Error::Blocked(_))), "{refused:?}");
        return Ok(());
    }
    // What people read can be run as it stands, in that order.
    let script = format!("BEGIN; {}; ROLLBACK", render::script(&plan));
    lab.database
        .server()
        .try_query(lab.database.name(), &script)
        .await
        .map_err(|error| {
            TestCaseError::fail(format!("the script fails: {error:?}\n{}", lab.generic(&script)))
        })?;
    match lab.apply_as(&manifest, mode).await {
        Ok(_) => {}
        Err(error) => {
            return Err(TestCaseError::fail(format!(
                "{error}\n{}",
                lab.generic(&render::script(&plan))
            )));
        }
    }
    let left = lab.generic(&render::script(&lab.plan(&manifest, mode).await));
    prop_assert!(
        left.is_empty(),
        "left to do:\n{left}\nwas planned:\n{}",
        lab.generic(&render::script(&plan))
    );
    let after = held(lab).await;
    let lost: Vec<_> = before
        .difference(&after)
        .filter(|entry| additive || OTHERS.iter().any(|role| entry.split(' ').nth(1) == Some(role)))
        // A schema's old owner has its privileges as such, and is one of many after.
        .filter(|entry| !entry.starts_with("s1 ") && !entry.starts_with("s2 ") && !entry.starts_with("s3 "))
        .filter(|entry| !entry.starts_with("member"))
        .collect();
    prop_assert!(lost.is_empty(), "lost: {lost:?}");
    Ok(())
}

fn on(version: Version) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let lab = runtime.block_on(Lab::new(version));
    runtime.block_on(lab.sql(SETUP));
    // A step takes a second on a busy machine; PROPTEST_CASES=500 is for a quiet one, and looks somewhere new. A
    // run without it is always the same one, so that it fails only for what has changed.
    let asked: Option<u32> = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|count| count.parse().ok());
    let cases = asked.unwrap_or(24);
    let config = Config {
        cases,
        max_shrink_iters: 60,
        failure_persistence: None,
        ..Config::default()
    };
    let mut runner = match asked {
        Some(_) => TestRunner::new(config),
        None => TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha)),
    };
    runner
        .run(&step(), |step| runtime.block_on(run(&lab, step)))
        .unwrap_or_else(|error| panic!("PostgreSQL {version}: {error}"));
}

#[test]
fn random_manifests_converge_from_random_states() {
    versions().into_iter().for_each(on);
}
