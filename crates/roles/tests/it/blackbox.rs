//! The numbered black-box checks: manifest and database as input; text, exit code and privileges as output.

use crate::on_every_version;

/// The profile example of pgroles, statement by statement.
const MINIMAL: &str = "
default_owner: P_migrator
profiles:
  editor:
    grants:
    - {privileges: [USAGE], object: {type: schema}}
    - {privileges: [SELECT, INSERT, UPDATE, DELETE], object: {type: table, name: '*'}}
    - {privileges: [USAGE], object: {type: sequence, name: '*'}}
    default_privileges:
    - {privileges: [SELECT, INSERT, UPDATE, DELETE], on_type: table}
    - {privileges: [USAGE], on_type: sequence}
  viewer:
    grants:
    - {privileges: [USAGE], object: {type: schema}}
    - {privileges: [SELECT], object: {type: table, name: '*'}}
    default_privileges:
    - {privileges: [SELECT], on_type: table}
schemas: [{name: app, profiles: [editor, viewer], role_pattern: 'P_{schema}-{profile}'}]
memberships:
- {role: P_app-editor, members: [{name: P_backend}]}
- {role: P_app-viewer, members: [{name: P_reporting}]}";

on_every_version! {
    async fn check_01_the_statements_of_the_example(lab) {
        lab.sql("CREATE ROLE P_migrator; CREATE ROLE P_backend; CREATE ROLE P_reporting;
            CREATE SCHEMA app; CREATE TABLE app.t1 (i int); CREATE VIEW app.v1 AS SELECT 1").await;
        let inherit = if lab.database.server().version().major() >= 16 { " WITH INHERIT TRUE" } else { "" };
        let run = lab.run("diff", MINIMAL, &[]).await.exits(2).says("Plan: 12 change(s)");
        assert_eq!(run.out, format!(r#"CREATE ROLE "P_app-editor" NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE INHERIT NOREPLICATION NOBYPASSRLS;
COMMENT ON ROLE "P_app-editor" IS 'Generated from profile ''editor'' for schema ''app''';
CREATE ROLE "P_app-viewer" NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE INHERIT NOREPLICATION NOBYPASSRLS;
COMMENT ON ROLE "P_app-viewer" IS 'Generated from profile ''viewer'' for schema ''app''';
ALTER SCHEMA "app" OWNER TO "P_migrator";
GRANT USAGE ON SCHEMA "app" TO "P_app-editor";
GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE "app"."t1" TO "P_app-editor";
GRANT USAGE ON SCHEMA "app" TO "P_app-viewer";
GRANT SELECT ON TABLE "app"."t1" TO "P_app-viewer";
ALTER DEFAULT PRIVILEGES FOR ROLE "P_migrator" IN SCHEMA "app" GRANT USAGE ON SEQUENCES TO "P_app-editor";
ALTER DEFAULT PRIVILEGES FOR ROLE "P_migrator" IN SCHEMA "app" GRANT DELETE, INSERT, SELECT, UPDATE ON TABLES TO "P_app-editor";
ALTER DEFAULT PRIVILEGES FOR ROLE "P_migrator" IN SCHEMA "app" GRANT SELECT ON TABLES TO "P_app-viewer";
GRANT "P_app-editor" TO "P_backend"{inherit};
GRANT "P_app-viewer" TO "P_reporting"{inherit};"#));
        lab.apply(MINIMAL).await.says("Applied 12 change(s) successfully.").says("Applied: 12 change(s)");
        assert_eq!(lab.value("SELECT has_table_privilege('P_backend', 'app.t1', 'INSERT') AND NOT has_table_privilege('P_reporting', 'app.v1', 'SELECT')").await, "t");
    }

    async fn check_12_and_13_exit_codes_and_json(lab) {
        lab.sql("CREATE SCHEMA s; CREATE TABLE s.t (i int)").await;
        let manifest = "
            roles: [{name: P_r, login: true, password: {from_env: PW}}]
            grants: [{role: P_r, privileges: [SELECT], object: {type: table, schema: s, name: '*'}}]";
        let url = lab.database.url();
        let env = [("PW", "json_secret_value")];
        lab.run_as(&url, "diff", manifest, &["--no-exit-code"], &env).await.exits(0);
        let run = lab.run_as(&url, "diff", manifest, &["--format", "json"], &env).await.exits(2).hides("json_secret_value");
        let plan: serde_json::Value = serde_json::from_str(&run.out).unwrap();
        assert_eq!(plan[0]["CreateRole"]["state"]["login"], true);
        assert_eq!(plan[1]["SetPassword"]["password"], "[REDACTED]");
        assert_eq!(plan[2]["Grant"]["name"], "*");
        assert_eq!(plan[2]["Grant"]["privileges"][0], "SELECT");
        lab.run_as(&url, "apply", manifest, &[], &env).await.exits(0).hides("json_secret_value");
        // A superuser sees that the password is already set.
        lab.run_as(&url, "diff", manifest, &[], &env).await.exits(0).says("No changes needed");
        // Another password alone is not drift, because a role that cannot read it must set it every time.
        lab.run_as(&url, "diff", manifest, &[], &[("PW", "another")]).await.exits(0).says("ALTER ROLE \"P_r\" PASSWORD '[REDACTED]'");
        lab.run_as(&url, "apply", manifest, &[], &[("PW", "another")]).await.exits(0).says("1 password(s) to set");
        assert!(lab.database.connect(&lab.text("P_r"), "another").await.is_ok());
        for entry in lab.database.log() {
            assert!(!format!("{entry:?}").contains("SCRAM-SHA"), "{entry:?}");
        }
    }

    async fn check_14_a_missing_variable_changes_nothing(lab) {
        let manifest = "roles: [{name: P_r, login: true, password: {from_env: TEST_PW_MISSING}}]";
        for command in ["diff", "apply"] {
            lab.run(command, manifest, &[]).await.exits(1).says("TEST_PW_MISSING").says("failed to resolve role passwords");
        }
        assert_eq!(lab.value("SELECT count(*) FROM pg_roles WHERE rolname = 'P_r'").await, "0");
    }

    async fn check_15_to_17_wildcards_and_signatures(lab) {
        lab.sql("CREATE SCHEMA s; CREATE TABLE s.a (i int); CREATE TABLE s.b (i int) PARTITION BY RANGE (i);
            CREATE MATERIALIZED VIEW s.m AS SELECT 1; CREATE SCHEMA empty;
            CREATE FUNCTION s.f(int) RETURNS int LANGUAGE sql AS 'SELECT 1'; REVOKE EXECUTE ON FUNCTION s.f FROM PUBLIC").await;
        lab.apply("
            roles: [{name: P_r}]
            grants:
            - {role: P_r, privileges: [SELECT], object: {type: table, schema: s, name: '*'}}
            - {role: P_r, privileges: [SELECT], object: {type: table, schema: empty, name: '*'}}
            - {role: P_r, privileges: [EXECUTE], object: {type: function, schema: s, name: 'f(integer)'}}").await
            .says("2 grant(s) to add");
        assert_eq!(lab.value("SELECT has_table_privilege('P_r', 's.a', 'SELECT') AND has_table_privilege('P_r', 's.b', 'SELECT') AND NOT has_table_privilege('P_r', 's.m', 'SELECT') AND has_function_privilege('P_r', 's.f(int)', 'EXECUTE')").await, "t");
    }

    async fn check_18_to_20_schemas_and_owners(lab) {
        lab.sql("CREATE ROLE P_o; CREATE SCHEMA old").await;
        let manifest = "
            roles: [{name: P_r}]
            schemas: [{name: old, owner: P_o}, {name: new, owner: P_o}]
            default_privileges: [{schema: old, grant: [{role: P_r, privileges: [SELECT], on_type: table}]}]";
        lab.run("diff", manifest, &[]).await.exits(2).says("CREATE SCHEMA \"new\" AUTHORIZATION \"P_o\"");
        lab.apply(manifest).await;
        assert_eq!(lab.value("SELECT defaclrole::regrole FROM pg_default_acl").await, "P_o");
        lab.sql("REVOKE ALL ON SCHEMA old FROM P_o").await;
        lab.apply(manifest).await.says("1 grant(s) to add");
        assert_eq!(lab.value("SELECT has_schema_privilege('P_o', 'old', 'CREATE') AND has_schema_privilege('P_o', 'old', 'USAGE')").await, "t");
        let missing = "roles: [{name: P_new}]\nschemas: [{name: third, owner: P_nobody}]";
        lab.run("apply", missing, &[]).await.exits(1).says("P_nobody").says("SQLSTATE 42704");
        assert_eq!(lab.value("SELECT count(*) FROM pg_roles WHERE rolname = 'P_new'").await, "0");
    }

    async fn check_21_to_23_modes(lab) {
        lab.sql("CREATE ROLE P_o; CREATE ROLE P_x; CREATE SCHEMA s; CREATE TABLE s.t (i int)").await;
        let manifest = "
            roles: [{name: P_r}]
            schemas: [{name: s, owner: P_o}]
            grants: [{role: P_r, privileges: [SELECT], object: {type: table, schema: s, name: '*'}}]
            default_privileges: [{schema: s, grant: [{role: P_r, privileges: [SELECT], on_type: table}]}]";
        let additive = ["--mode", "additive"];
        lab.run("apply", manifest, &additive).await.exits(0)
            .says("Applied: 2 change(s)").says("1 role(s) to create").says("1 grant(s) to add");
        lab.run("diff", manifest, &additive).await.exits(0).says("No changes needed");
        lab.sql("GRANT INSERT ON s.t TO P_r; ALTER ROLE P_r LOGIN NOINHERIT").await;
        lab.run("apply", manifest, &additive).await.exits(0);
        assert_eq!(lab.value("SELECT has_table_privilege('P_r', 's.t', 'INSERT') AND (SELECT rolcanlogin AND NOT rolinherit FROM pg_roles WHERE rolname = 'P_r')").await, "t");
        lab.run("diff", manifest, &["--mode", "adopt"]).await.exits(2).says("apply would refuse this plan");
        lab.run("apply", manifest, &["--mode", "adopt"]).await.exits(1).says("allow-schema-owner-transfers");
        let retiring = format!("{manifest}\n            retirements: [{{role: P_x}}]");
        lab.run("apply", &retiring, &["--mode", "adopt", "--allow-schema-owner-transfers"]).await.exits(0);
        assert_eq!(lab.value("SELECT has_table_privilege('P_r', 's.t', 'INSERT')").await, "f");
        assert_eq!(lab.value("SELECT count(*) FROM pg_roles WHERE rolname = 'P_x'").await, "1");
        lab.apply(&retiring).await.says("1 role(s) to drop");
        assert_eq!(lab.value("SELECT count(*) FROM pg_roles WHERE rolname = 'P_x'").await, "0");
    }

    async fn check_25_and_26_retirements(lab) {
        lab.sql("CREATE ROLE P_a LOGIN PASSWORD 'pw-of-a'; CREATE ROLE P_b; CREATE ROLE P_heir; CREATE SCHEMA s; CREATE TABLE s.t (i int);
            GRANT USAGE ON SCHEMA s TO P_a; GRANT SELECT ON s.t TO P_a").await;
        lab.run("apply", "retirements: [{role: P_a}]", &[]).await.exits(1).says("privilege dependency");
        let session = lab.database.connect(&lab.text("P_a"), "pw-of-a").await.unwrap();
        lab.run("apply", "retirements: [{role: P_a, drop_owned: true}]", &[]).await.exits(1).says("active session");
        lab.apply("retirements: [{role: P_a, drop_owned: true, terminate_sessions: true}]").await;
        assert!(session.simple_query("SELECT 1").await.is_err(), "its session lives on");
        lab.sql("CREATE SCHEMA of_b AUTHORIZATION P_b; CREATE TABLE of_b.t (i int); ALTER TABLE of_b.t OWNER TO P_b").await;
        lab.run("apply", "retirements: [{role: P_b}]", &[]).await.exits(1).says("owned object");
        lab.apply("roles: [{name: P_heir}]\nretirements: [{role: P_b, reassign_owned_to: P_heir}]").await;
        assert_eq!(lab.value("SELECT nspowner::regrole || ' ' || (SELECT relowner::regrole FROM pg_class WHERE relnamespace = n.oid AND relname = 't') FROM pg_namespace n WHERE nspname = 'of_b'").await, "P_heir P_heir");
    }

    async fn what_a_retired_role_passed_on_stays(lab) {
        lab.sql("CREATE ROLE P_a; CREATE ROLE P_b; CREATE ROLE P_c; CREATE ROLE P_g; CREATE ROLE P_m; CREATE SCHEMA s; GRANT USAGE ON SCHEMA s TO PUBLIC; CREATE SCHEMA other;
            GRANT USAGE ON SCHEMA other TO PUBLIC; CREATE TABLE s.t (i int); CREATE TABLE other.t (i int); GRANT SELECT ON s.t, other.t TO P_a WITH GRANT OPTION;
            GRANT P_g TO P_a WITH ADMIN OPTION; SET ROLE P_a; GRANT SELECT ON s.t, other.t TO P_b WITH GRANT OPTION; GRANT P_g TO P_m;
            SET ROLE P_b; GRANT SELECT ON s.t TO P_c; RESET ROLE").await;
        lab.apply("
            roles: [{name: P_b}, {name: P_c, external: true}]
            grants:
            - {role: P_b, privileges: [SELECT], object: {type: table, schema: s, name: t}}
            - {role: P_c, privileges: [SELECT], object: {type: table, schema: s, name: t}}
            retirements: [{role: P_a, drop_owned: true}]").await;
        assert_eq!(lab.value("SELECT has_table_privilege('P_b', 's.t', 'SELECT') AND has_table_privilege('P_c', 's.t', 'SELECT') AND has_table_privilege('P_b', 'other.t', 'SELECT')").await, "t");
        assert_eq!(lab.value("SELECT pg_has_role('P_m', 'P_g', 'MEMBER')").await, "t");
    }

    async fn what_a_retirement_cannot_dispose_of_is_a_blocker(lab) {
        lab.sql("CREATE ROLE P_a; CREATE ROLE P_b; CREATE ROLE P_c; CREATE ROLE P_heir; CREATE ROLE P_g; CREATE ROLE P_m").await;
        let other = lab.database.server().database().await;
        other.execute(&lab.text(&format!("ALTER DATABASE \"{}\" OWNER TO P_a", other.name()))).await;
        lab.run("apply", "retirements: [{role: P_a, drop_owned: true}]", &[]).await.exits(1).says("can only be reassigned");
        lab.apply("retirements: [{role: P_a, drop_owned: true, reassign_owned_to: P_heir}]").await;
        lab.sql("ALTER DEFAULT PRIVILEGES FOR ROLE P_b GRANT SELECT ON TABLES TO P_heir").await;
        lab.run("apply", "retirements: [{role: P_b, reassign_owned_to: P_heir}]", &[]).await.exits(1).says("cannot be reassigned");
        lab.apply("retirements: [{role: P_b, reassign_owned_to: P_heir, drop_owned: true}]").await;
        // A role that has added members can go without more ado.
        lab.sql("GRANT P_g TO P_c WITH ADMIN OPTION; SET ROLE P_c; GRANT P_g TO P_m; RESET ROLE").await;
        lab.apply("retirements: [{role: P_c}]").await;
        assert_eq!(lab.value("SELECT pg_has_role('P_m', 'P_g', 'MEMBER')").await, "t");
        other.execute(&format!("ALTER DATABASE \"{}\" OWNER TO CURRENT_USER", other.name())).await;
    }

    async fn check_28_profile_attributes(lab) {
        lab.apply("
            profiles: {p: {login: false, inherit: false, config: {search_path: '{schema}'}}}
            schemas: [{name: s, profiles: [p], role_pattern: 'P_{profile}'}]").await;
        assert_eq!(lab.value("SELECT rolcanlogin || ' ' || rolinherit || ' ' || shobj_description(oid, 'pg_authid') || ' ' || rolconfig::text FROM pg_roles WHERE rolname = 'P_p'").await,
            "false false Generated from profile 'p' for schema 's' {search_path=s}");
    }

    async fn check_30_inspect(lab) {
        lab.sql("CREATE SCHEMA s").await;
        let manifest = "roles: [{name: P_r}]\ngrants: [{role: P_r, privileges: [USAGE], object: {type: schema, name: s}}]";
        lab.apply(manifest).await;
        let run = lab.run("inspect", manifest, &[]).await.exits(0).says("Roles: 1").says("USAGE on schema s to P_r");
        run.says("PUBLIC grants").says("CONNECT, TEMPORARY").says("Schema \"public\"");
    }

    async fn check_36_objects_in_another_database_are_a_blocker(lab) {
        lab.sql("CREATE ROLE P_a").await;
        let other = lab.database.server().database().await;
        other.execute(&lab.text("CREATE TABLE of_a (i int); ALTER TABLE of_a OWNER TO P_a")).await;
        let manifest = "retirements: [{role: P_a, drop_owned: true}]";
        let run = lab.run("apply", manifest, &[]).await.exits(1).says("owned object(s) in database");
        assert!(run.err.contains(other.name()));
        lab.run("diff", manifest, &[]).await.exits(2).says("apply would refuse this plan");
    }
}
