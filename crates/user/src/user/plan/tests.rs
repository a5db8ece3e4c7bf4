//! Statements for a spec and a catalog, without a server.

mod extensions;
mod fixture;
mod powers;

use serde_json::json;
use stanchion_api::user::{AppliedGrant, GrantKind};

use super::*;
use crate::user::catalog::databases::Contents;
use crate::user::catalog::{MembershipFacts, RoleFacts};
use crate::user::passwords::{Login, PasswordChange};
use fixture::{current, empty, granted_by, held, made, mark, role, role_of, schema, shown, wanted};

#[test]
fn a_role_is_made_with_everything_it_needs() {
    let request = wanted(&json!({
        "privileges": ["CONNECT", "READ"], "memberOf": [{ "role": "readers" }],
        "role": { "connectionLimit": 3, "validUntil": "2030-01-01T00:00:00Z", "comment": "it's", "parameters": { "search_path": "a, b" } },
    }));
    let mut there = current(empty(150_000, true), &schema("public", "pg_database_owner"));
    there.passwords.main = Some(PasswordChange::Set("SCRAM-SHA-256$secret".into()));
    insta::assert_snapshot!(shown(&request, &there), @r#"
    CREATE ROLE "alice" LOGIN CONNECTION LIMIT 3 VALID UNTIL '2030-01-01T00:00:00Z' PASSWORD '[redacted]'
    COMMENT ON ROLE "alice" IS 'it''s [stanchion PostgresUser ns/alice uid created]'
    ALTER ROLE "alice" SET "search_path" TO 'a', 'b'
    GRANT "readers" TO "alice"
    GRANT CONNECT ON DATABASE "app" TO "alice"
    GRANT USAGE ON SCHEMA "public" TO "alice"
    GRANT SELECT ON ALL TABLES IN SCHEMA "public" TO "alice"
    ALTER DEFAULT PRIVILEGES FOR ROLE "admin" IN SCHEMA "public" GRANT SELECT ON TABLES TO "alice"
    GRANT SELECT ON ALL SEQUENCES IN SCHEMA "public" TO "alice"
    ALTER DEFAULT PRIVILEGES FOR ROLE "admin" IN SCHEMA "public" GRANT SELECT ON SEQUENCES TO "alice"
    "#);
}

#[test]
fn only_what_differs_is_named() {
    let request =
        wanted(&json!({ "role": { "connectionLimit": 3, "createDatabase": true, "superuser": false } }));
    let mut there = current(made(150_000), &Contents::default());
    insta::assert_snapshot!(shown(&request, &there), @r#"
    ALTER ROLE "alice" CREATEDB CONNECTION LIMIT 3
    "#);
    if let Some(role) = &mut there.current.catalog.role {
        role.connection_limit = 3;
        role.create_database = true;
    }
    assert_eq!(shown(&request, &there), "");
}

#[test]
fn words_that_leave_the_spec_are_taken_from_whatever_still_has_them() {
    let mut request = wanted(&json!({ "privileges": ["CONNECT", "SELECT"] }));
    let grant = |kind, owner: Option<&str>, words: &[&str]| AppliedGrant {
        kind,
        database: Some("app".into()),
        schema: Some("public".into()),
        name: owner.map(Into::into),
        privileges: words.iter().map(ToString::to_string).collect(),
    };
    request.before.grants = vec![
        grant(GrantKind::Tables, None, &["SELECT", "INSERT"]),
        grant(GrantKind::DefaultTables, Some("admin"), &["SELECT", "INSERT"]),
        grant(GrantKind::Functions, None, &["EXECUTE"]),
    ];
    let mut contents = schema("public", "pg_database_owner");
    contents.held = [
        held(GrantKind::Schema, "public", None, "USAGE"),
        held(GrantKind::Tables, "public", None, "SELECT"),
        held(GrantKind::Sequences, "public", None, "SELECT"),
        held(GrantKind::DefaultTables, "public", Some("admin"), "SELECT"),
        held(GrantKind::DefaultTables, "public", Some("admin"), "INSERT"),
        held(GrantKind::DefaultSequences, "public", Some("admin"), "SELECT"),
    ]
    .into();
    contents.partly = [
        held(GrantKind::Tables, "public", None, "SELECT"),
        held(GrantKind::Tables, "public", None, "INSERT"),
    ]
    .into();
    insta::assert_snapshot!(shown(&request, &current(made(150_000), &contents)), @r#"
    REVOKE INSERT ON ALL TABLES IN SCHEMA "public" FROM "alice"
    ALTER DEFAULT PRIVILEGES FOR ROLE "admin" IN SCHEMA "public" REVOKE INSERT ON TABLES FROM "alice"
    "#);
}

#[test]
fn an_owner_keeps_what_comes_with_the_ownership() {
    let grant = |kind, schema: Option<&str>, words: &[&str]| AppliedGrant {
        kind,
        database: Some("app".into()),
        schema: schema.map(Into::into),
        name: None,
        privileges: words.iter().map(ToString::to_string).collect(),
    };
    let mut request = wanted(&json!({ "privileges": ["CONNECT"] }));
    request.before.grants = vec![
        grant(GrantKind::Database, None, &["CONNECT", "TEMPORARY"]),
        grant(GrantKind::Schema, Some("mine"), &["USAGE", "CREATE"]),
    ];
    let statements = |owner: &str, request: &Wanted| {
        let mut contents = schema("mine", owner);
        contents.held = ["USAGE", "CREATE"]
            .map(|word| held(GrantKind::Schema, "mine", None, word))
            .into();
        contents.partly.clone_from(&contents.held);
        let mut catalog = made(150_000);
        let app = catalog.databases.get_mut("app").unwrap();
        app.owner = owner.into();
        app.granted.insert("TEMPORARY".into());
        app.revocable.clone_from(&app.granted);
        shown(request, &current(catalog, &contents))
    };
    insta::assert_snapshot!(statements("admin", &request), @r#"
    REVOKE TEMPORARY ON DATABASE "app" FROM "alice"
    REVOKE CREATE, USAGE ON SCHEMA "mine" FROM "alice"
    "#);
    assert_eq!(statements("alice", &request), "");
    // It is about to become the owner.
    let mut catalog = made(150_000);
    let app = catalog.databases.get_mut("app").unwrap();
    app.granted.insert("TEMPORARY".into());
    app.revocable.clone_from(&app.granted);
    let mut owner = request.databases["app"].clone();
    owner.owner = true;
    let facts = &catalog.databases["app"];
    let changes = database::diff("app", &request, &owner, facts, &Contents::default(), &catalog);
    let what: Vec<&str> = changes.iter().map(|change| change.what.as_str()).collect();
    assert_eq!(what, ["owner of database app"]);
}

#[test]
fn memberships_by_version() {
    let request = wanted(&json!({
        "memberOf": [{ "role": "readers", "admin": true }], "membershipPolicy": "Authoritative",
    }));
    let facts = MembershipFacts {
        grants: ["admin", "somebody"].map(granted_by).into(),
        ..MembershipFacts::default()
    };
    let mut lines = Vec::new();
    for version in [150_000, 160_000] {
        let mut catalog = made(version);
        catalog.memberships.insert("writers".into(), facts.clone());
        lines.push(shown(&request, &current(catalog, &Contents::default())));
    }
    insta::assert_snapshot!(lines.join("\n---\n"), @r#"
    REVOKE "writers" FROM "alice"
    GRANT "readers" TO "alice" WITH ADMIN OPTION
    ---
    REVOKE "writers" FROM "alice" GRANTED BY "admin"
    REVOKE "writers" FROM "alice" GRANTED BY "somebody"
    GRANT "readers" TO "alice" WITH ADMIN TRUE
    "#);
}

#[test]
fn a_database_of_its_own_without_a_superuser() {
    let request = wanted(&json!({
        "database": "own", "privileges": ["OWNER"],
        "createDatabase": { "enabled": true, "owner": true, "extensions": ["pgcrypto"], "schemas": ["app"], "revokePublic": true },
    }));
    insta::assert_snapshot!(shown(&request, &current(empty(160_000, false), &Contents::default())), @r#"
    CREATE ROLE "alice" LOGIN
    COMMENT ON ROLE "alice" IS '[stanchion PostgresUser ns/alice uid created]'
    GRANT "alice" TO CURRENT_USER WITH INHERIT TRUE, SET TRUE
    CREATE DATABASE "own" OID …
    COMMENT ON DATABASE "own" IS '[stanchion PostgresUser ns/alice uid created]'
    ALTER DATABASE "own" OWNER TO "alice"
    REVOKE CONNECT, TEMPORARY ON DATABASE "own" FROM PUBLIC
    SET LOCAL search_path TO "public"
    CREATE EXTENSION IF NOT EXISTS "pgcrypto"
    SET LOCAL search_path TO pg_catalog, pg_temp
    CREATE SCHEMA IF NOT EXISTS "app" AUTHORIZATION "alice"
    GRANT CONNECT, CREATE, TEMPORARY ON DATABASE "own" TO "alice"
    GRANT CREATE, USAGE ON SCHEMA "app" TO "alice"
    GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER ON ALL TABLES IN SCHEMA "app" TO "alice"
    GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA "app" TO "alice"
    GRANT EXECUTE ON ALL ROUTINES IN SCHEMA "app" TO "alice"
    "#);
}

#[test]
fn a_login_that_takes_turns_has_the_limits_of_the_role() {
    let request = wanted(&json!({
        "passwordSecretRef": null, "password": { "generate": {}, "rotation": { "strategy": "DualUser" } },
        "role": { "connectionLimit": 2, "parameters": { "work_mem": "1MB" } },
    }));
    let mut there = current(made(160_000), &Contents::default());
    let login = |name: &str, enabled, facts: Option<RoleFacts>, change| Login {
        name: name.into(),
        catalog: Arc::new(Catalog {
            role: facts,
            ..empty(160_000, true)
        }),
        enabled,
        change,
    };
    there.passwords = Passwords {
        active: Some("alice_b".into()),
        dual: vec![
            login(
                "alice_a",
                false,
                Some(role_of("alice_a", &mark("alice_a"))),
                PasswordChange::Clear,
            ),
            login("alice_b", true, None, PasswordChange::Set("x".into())),
        ],
        ..Passwords::default()
    };
    insta::assert_snapshot!(shown(&request, &there), @r#"
    ALTER ROLE "alice" NOLOGIN CONNECTION LIMIT 2
    ALTER ROLE "alice" SET "work_mem" TO '1MB'
    ALTER ROLE "alice_a" NOLOGIN CONNECTION LIMIT 2 PASSWORD NULL
    CREATE ROLE "alice_b" LOGIN CONNECTION LIMIT 2 PASSWORD '[redacted]'
    COMMENT ON ROLE "alice_b" IS '[stanchion PostgresUser ns/alice uid created]'
    GRANT "alice" TO "alice_b"
    ALTER ROLE "alice_b" SET "role" TO 'alice'
    ALTER ROLE "alice_b" SET "work_mem" TO '1MB'
    "#);
}

#[test]
fn what_an_adopted_role_held_stays_its_own() {
    let request = wanted(&json!({
        "privileges": ["CONNECT", "TEMPORARY"], "memberOf": [{ "role": "readers" }], "existingRolePolicy": "Adopt",
    }));
    let mut catalog = made(150_000);
    catalog.role = Some(role("by hand"));
    catalog
        .memberships
        .insert("readers".into(), MembershipFacts::default());
    let given = holdings(&request, &current(catalog, &Contents::default()).current);
    let words: Vec<&Vec<String>> = given.iter().map(|grant| &grant.privileges).collect();
    assert_eq!(words, [&vec!["TEMPORARY".to_owned()]]);
}

#[test]
fn a_change_by_hand_is_left_alone_only_after_the_spec_was_applied() {
    for (mode, converged, left) in [
        ("Correct", true, false),
        ("Report", true, true),
        ("Ignore", true, true),
        ("Report", false, false),
    ] {
        let mut request = wanted(&json!({ "driftPolicy": { "mode": mode } }));
        request.before.converged = converged;
        let mut there = current(made(150_000), &Contents::default());
        assert_eq!(is_left_alone(&request, &there.passwords), left, "{mode}");
        there.passwords.rotated = Some(jiff::Timestamp::UNIX_EPOCH);
        assert!(
            !is_left_alone(&request, &there.passwords),
            "a new password is applied in every mode"
        );
    }
}

mod walls {
    use stanchion_api::instance::Attribute;
    use stanchion_kernel::Problem;

    use super::*;
    use crate::rules::Rules;
    use crate::server::Openings;
    use crate::user::catalog::{Reach, RoleRef};
    use fixture::viewer;

    /// What `plan` says. A database that is closed to the object was not read.
    fn refused(request: &Wanted, catalog: Catalog) -> Problem {
        let mut there = current(catalog, &Contents::default());
        there.current.contents.clear();
        let mut inputs = Inputs {
            now: jiff::Timestamp::UNIX_EPOCH,
            random: &mut rand::rng(),
        };
        let planned = plan(request, &Observed::Open(Box::new(there.current)), &mut inputs);
        planned.err().unwrap_or_else(|| panic!("it was planned"))
    }

    /// A server that opens only what the guide has.
    fn closed(catalog: &mut Catalog) {
        catalog.viewer.rules = Rules::of_default("ns", &Openings::default()).into();
    }

    #[test]
    fn nothing_leads_to_superuser_unless_the_instance_allows_it() {
        let dba = RoleRef {
            reach: Reach {
                superuser: true,
                ..Reach::default()
            },
            mark: None,
        };
        for more in [
            json!({ "role": { "superuser": true } }),
            json!({ "role": { "parameters": { "Session_Preload_Libraries": "x" } } }),
            json!({ "memberOf": [{ "role": "dba" }] }),
        ] {
            let request = wanted(&more);
            let mut catalog = made(160_000);
            catalog.existing.insert("dba".into(), dba.clone());
            let problem = refused(&request, catalog);
            assert_eq!(problem.reason, "AttributeNotAllowed", "{problem}");
            let mut catalog = made(160_000);
            catalog.existing.insert("dba".into(), dba.clone());
            let mut rules = (*viewer().rules).clone();
            rules.attributes = vec![Attribute::Superuser];
            catalog.viewer.rules = rules.into();
            let there = current(catalog, &Contents::default());
            differences(&request, &there.current, &there.passwords).unwrap();
        }
    }

    #[test]
    fn roles_that_no_object_made_are_closed_unless_they_are_opened() {
        let request = wanted(&json!({ "memberOf": [{ "role": "readers" }] }));
        let mut catalog = made(160_000);
        closed(&mut catalog);
        assert_eq!(refused(&request, catalog).reason, "RoleNotAllowed");
        let request = wanted(&json!({ "memberOf": [{ "role": "pg_monitor" }] }));
        let mut catalog = made(160_000);
        catalog.existing.insert("pg_monitor".into(), RoleRef::default());
        assert_eq!(
            refused(&request, catalog).reason,
            "RoleNotAllowed",
            "a pattern does not open it"
        );
    }

    #[test]
    fn a_database_of_the_server_is_refused_although_nothing_in_it_was_read() {
        let request = wanted(&json!({ "database": "postgres", "privileges": ["READ"] }));
        let mut catalog = made(160_000);
        closed(&mut catalog);
        let (_, facts) = catalog.databases.pop_first().unwrap();
        catalog.databases.insert("postgres".into(), facts);
        assert_eq!(refused(&request, catalog).reason, "DatabaseNotAllowed");
    }

    #[test]
    fn parameters_that_hide_something_are_refused() {
        for name in [
            "log_min_duration_statement",
            "track_activities",
            "pgaudit.log",
            "role",
            "session_preload_libraries",
        ] {
            let request = wanted(&json!({ "role": { "parameters": { name: "x" } } }));
            let mut catalog = made(160_000);
            catalog.parameters.insert(name.into());
            catalog.user_parameters.insert("role".into());
            let problem = refused(&request, catalog);
            assert_eq!(problem.reason, "AttributeNotAllowed", "{name}: {problem}");
        }
    }
}
