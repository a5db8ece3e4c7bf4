//! A random database, and random changes by others.

use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

/// Roles that manifests declare; the others are unmanaged.
pub(super) const MANAGED: [&str; 4] = ["P_a", "P_b", "P_c", "P_d"];
pub(super) const OTHERS: [&str; 2] = ["P_x", "P_y"];
pub(super) const SCHEMAS: [&str; 3] = ["s1", "s2", "s3"];

/// Kind, name in SQL, name in a manifest, privileges.
pub(super) const OBJECTS: [(&str, &str, &str, &[&str]); 6] = [
    ("table", "t1", "t1", &["SELECT", "INSERT", "UPDATE", "TRIGGER"]),
    ("table", "t2", "t2", &["SELECT", "DELETE", "TRUNCATE"]),
    ("view", "v1", "v1", &["SELECT", "UPDATE"]),
    ("sequence", "q1", "q1", &["SELECT", "USAGE"]),
    ("function", "f1(int, text)", "f1(a integer, b text)", &["EXECUTE"]),
    ("type", "color", "color", &["USAGE"]),
];

pub(super) const SETUP: &str = "
    CREATE ROLE P_a; CREATE ROLE P_b LOGIN; CREATE ROLE P_c; CREATE ROLE P_d; CREATE ROLE P_x; CREATE ROLE P_y;
    DO $$ DECLARE s text; BEGIN FOREACH s IN ARRAY ARRAY['s1', 's2', 's3'] LOOP
      EXECUTE format('CREATE SCHEMA %I; GRANT USAGE ON SCHEMA %1$I TO PUBLIC; CREATE TYPE %1$I.color AS ENUM (''red'');
        CREATE TABLE %1$I.t1 (i int, j text); CREATE TABLE %1$I.t2 (i int) PARTITION BY RANGE (i);
        CREATE VIEW %1$I.v1 AS SELECT 1 AS one; CREATE SEQUENCE %1$I.q1;
        CREATE FUNCTION %1$I.f1(a int, b text) RETURNS int LANGUAGE sql AS ''SELECT 1''', s);
    END LOOP; END $$";

pub(super) fn anybody() -> impl Strategy<Value = &'static str> {
    select([&MANAGED[..], &OTHERS[..]].concat())
}

pub(super) fn managed() -> impl Strategy<Value = &'static str> {
    select(&MANAGED[..])
}

pub(super) fn schema() -> impl Strategy<Value = &'static str> {
    select(&SCHEMAS[..])
}

pub(super) fn some_of(privileges: &'static [&'static str]) -> impl Strategy<Value = String> {
    subsequence(privileges, 1..=privileges.len()).prop_map(|chosen| chosen.join(", "))
}

fn with_option() -> impl Strategy<Value = &'static str> {
    select(vec!["", " WITH GRANT OPTION"])
}

fn keyword(kind: &str) -> &'static str {
    match kind {
        "sequence" => "SEQUENCE",
        "function" => "FUNCTION",
        "type" => "TYPE",
        _ => "TABLE",
    }
}

/// A statement of another user; it may fail.
pub(super) fn disturbance() -> impl Strategy<Value = String> {
    let object = || {
        (schema(), select(&OBJECTS[..])).prop_flat_map(|(schema, (kind, sql, _, privileges))| {
            let place = format!("{} {schema}.{sql}", keyword(kind));
            (Just(place), some_of(privileges))
        })
    };
    prop_oneof![
        4 => (object(), anybody(), with_option()).prop_map(|((place, privileges), role, option)| {
            format!("GRANT {privileges} ON {place} TO {role}{option}")
        }),
        2 => (object(), anybody(), anybody()).prop_map(|((place, privileges), giver, role)| {
            format!("SET ROLE {giver}; GRANT {privileges} ON {place} TO {role}; RESET ROLE")
        }),
        1 => (object(), anybody()).prop_map(|((place, privileges), role)| format!("REVOKE {privileges} ON {place} FROM {role} CASCADE")),
        1 => object().prop_map(|(place, privileges)| format!("REVOKE {privileges} ON {place} FROM PUBLIC")),
        2 => (anybody(), anybody(), any::<bool>()).prop_map(|(group, member, admin)| {
            format!("GRANT {group} TO {member}{}", if admin { " WITH ADMIN OPTION" } else { "" })
        }),
        2 => (anybody(), anybody(), anybody(), any::<bool>()).prop_map(|(giver, group, member, admin)| {
            format!("SET ROLE {giver}; GRANT {group} TO {member}{}; RESET ROLE", if admin { " WITH ADMIN OPTION" } else { "" })
        }),
        2 => (schema(), anybody()).prop_map(|(schema, owner)| format!("ALTER SCHEMA {schema} OWNER TO {owner}")),
        1 => (schema(), anybody()).prop_map(|(schema, owner)| format!("ALTER TABLE {schema}.t1 OWNER TO {owner}")),
        1 => (schema(), anybody()).prop_map(|(schema, role)| format!("GRANT CREATE, USAGE ON SCHEMA {schema} TO {role}")),
        1 => (schema(), anybody()).prop_map(|(schema, role)| format!("REVOKE ALL ON SCHEMA {schema} FROM {role}")),
        3 => (schema(), anybody(), with_option()).prop_map(|(schema, role, option)| {
            format!("GRANT SELECT (i), UPDATE (j) ON {schema}.t1 TO {role}{option}")
        }),
        3 => (schema(), anybody(), anybody(), with_option()).prop_map(|(schema, giver, role, option)| {
            format!("SET ROLE {giver}; GRANT SELECT (i) ON {schema}.t1 TO {role}{option}; RESET ROLE")
        }),
        2 => (option::of(schema()), anybody(), anybody(), with_option()).prop_map(|(schema, owner, role, option)| {
            let place = schema.map(|schema| format!(" IN SCHEMA {schema}")).unwrap_or_default();
            format!("ALTER DEFAULT PRIVILEGES FOR ROLE {owner}{place} GRANT SELECT, INSERT ON TABLES TO {role}{option}")
        }),
        1 => managed().prop_map(|role| format!("ALTER ROLE {role} CREATEDB NOINHERIT CONNECTION LIMIT 7 SET search_path = a, b")),
        1 => managed().prop_map(|role| format!("ALTER ROLE {role} SET search_path = a, \"B\"; COMMENT ON ROLE {role} IS 'odd'")),
    ]
}
