//! Known loops: manifests that made pgroles grant and revoke, or alter, the same thing on every run.

use stanchion_roles::plan::Mode;

use crate::on_every_version;

on_every_version! {
    async fn a_new_table_under_a_wildcard_keeps_the_old_grants(lab) {
        lab.sql("CREATE SCHEMA s; CREATE TABLE s.a (i int); CREATE TABLE s.b (i int)").await;
        let manifest = "
            roles: [{name: P_r}]
            grants: [{role: P_r, privileges: [SELECT], object: {type: table, schema: s, name: '*'}}]";
        lab.converge(manifest).await;
        lab.sql("CREATE TABLE s.c (i int)").await;
        assert_eq!(lab.script(manifest).await, "GRANT SELECT ON TABLE \"s\".\"c\" TO \"P_r\";");
        lab.converge(manifest).await;
        assert_eq!(lab.value("SELECT bool_and(has_table_privilege('P_r', oid, 'SELECT')) FROM pg_class WHERE relnamespace = 's'::regnamespace AND relkind = 'r'").await, "t");
    }

    async fn a_wildcard_and_a_named_grant_do_not_fight(lab) {
        lab.sql("CREATE SCHEMA s; CREATE TABLE s.a (i int); CREATE TABLE s.b (i int); CREATE VIEW s.v AS SELECT 1").await;
        lab.converge("
            roles: [{name: P_r}]
            grants:
            - {role: P_r, privileges: [SELECT], object: {type: table, schema: s, name: '*'}}
            - {role: P_r, privileges: [SELECT, INSERT], object: {type: table, schema: s, name: a}}
            - {role: P_r, privileges: [SELECT], object: {type: table, schema: s, name: v}}").await;
        assert_eq!(lab.value("SELECT relacl::text FROM pg_class WHERE oid = 's.a'::regclass").await.matches("P_r=ar/").count(), 1);
    }

    async fn timestamps_with_offsets_are_moments(lab) {
        let manifest = "roles: [{name: P_r, password_valid_until: '2030-01-01T00:00:00.500+02:00'}]";
        lab.converge(manifest).await;
        lab.converge("roles: [{name: P_r}]").await;
        assert_eq!(lab.value("SELECT rolvaliduntil FROM pg_roles WHERE rolname = 'P_r'").await, "infinity");
    }

    async fn functions_are_meant_by_their_types(lab) {
        lab.sql("CREATE SCHEMA s; CREATE TYPE s.color AS ENUM ('red');
            CREATE FUNCTION s.f(a integer, b text) RETURNS int LANGUAGE sql AS 'SELECT 1';
            CREATE FUNCTION s.f(a timestamptz, VARIADIC b s.color[]) RETURNS int LANGUAGE sql AS 'SELECT 1';
            CREATE FUNCTION s.a_rather_long_function_name_that_says_it_all(timestamptz, timestamptz, text) RETURNS int LANGUAGE sql AS 'SELECT 1';
            CREATE FUNCTION s.out(a int, OUT b int, OUT c int) LANGUAGE sql AS 'SELECT 1, 1';
            CREATE AGGREGATE s.agg(int) (sfunc = int4pl, stype = int);
            CREATE PROCEDURE s.p(INOUT x int) LANGUAGE sql AS 'SELECT 1'").await;
        let by_name = "
            roles: [{name: P_r}]
            grants:
            - {role: P_r, privileges: [EXECUTE], object: {type: function, schema: s, name: 'f(int4, text)'}}
            - {role: P_r, privileges: [EXECUTE], object: {type: function, schema: s, name: 'f(a timestamptz, VARIADIC b color[])'}}
            - {role: P_r, privileges: [EXECUTE], object: {type: function, schema: s, name: out}}
            - {role: P_r, privileges: [EXECUTE], object: {type: function, schema: s, name: 'agg(integer)'}}
            - {role: P_r, privileges: [EXECUTE], object: {type: function, schema: s, name: 'p(INOUT x integer)'}}";
        lab.converge(by_name).await;
        assert_eq!(lab.value("SELECT count(*) FROM pg_proc WHERE proacl::text LIKE '%P_r=X/%'").await, "5");
        lab.converge("
            roles: [{name: P_r}]
            grants: [{role: P_r, privileges: [EXECUTE], object: {type: function, schema: s, name: '*', except: [out, 'f(integer, text)']}}]").await;
        assert_eq!(lab.value("SELECT string_agg(proname, ' ' ORDER BY proname, pronargs) FROM pg_proc WHERE proacl::text LIKE '%P_r=X/%'").await,
            "a_rather_long_function_name_that_says_it_all agg f p");
    }

    async fn an_owners_own_privileges_are_not_grants(lab) {
        lab.sql("CREATE ROLE P_o; CREATE SCHEMA s AUTHORIZATION P_o; CREATE TABLE s.t (i int); ALTER TABLE s.t OWNER TO P_o").await;
        let manifest = "
            default_owner: P_o
            roles: [{name: P_o}, {name: P_r}]
            schemas: [{name: s}]
            grants: [{role: P_r, privileges: [SELECT], object: {type: table, schema: s, name: '*'}}]";
        lab.converge(manifest).await;
        assert_eq!(lab.value("SELECT has_table_privilege('P_o', 's.t', 'DELETE')").await, "t");
    }

    async fn membership_options_converge_on_every_version(lab) {
        let manifest = "
            roles: [{name: P_g}, {name: P_m, login: true}]
            memberships: [{role: P_g, members: [{name: P_m, inherit: false, admin: true, set: false}]}]";
        lab.converge(manifest).await;
        lab.converge("
            roles: [{name: P_g}, {name: P_m, login: true}]
            memberships: [{role: P_g, members: [{name: P_m}]}]").await;
        assert_eq!(lab.value("SELECT admin_option FROM pg_auth_members WHERE member = 'P_m'::regrole").await, "f");
        lab.converge("roles: [{name: P_g}, {name: P_m, login: true}]").await;
        assert_eq!(lab.value("SELECT count(*) FROM pg_auth_members WHERE member = 'P_m'::regrole").await, "0");
    }

    async fn a_circle_through_strangers_is_refused_before_it_fails(lab) {
        lab.sql("CREATE ROLE P_a; CREATE ROLE P_x; CREATE ROLE P_y; CREATE ROLE P_d; GRANT P_x TO P_a; GRANT P_y TO P_x; GRANT P_d TO P_y").await;
        let manifest = "roles: [{name: P_a}, {name: P_d}]\nmemberships: [{role: P_a, members: [{name: P_d}]}]";
        let additive = ["--mode", "additive"];
        lab.run("apply", manifest, &additive).await.exits(1).says("\"P_d\" cannot become a member of \"P_a\"");
        // The other way round, and without the conflicting membership, it is not circular.
        lab.run("apply", "roles: [{name: P_a}, {name: P_d}]\nmemberships: [{role: P_d, members: [{name: P_a}]}]", &additive).await.exits(0);
        lab.converge(manifest).await;
    }

    async fn a_schema_that_changes_hands_keeps_both_owners_right(lab) {
        lab.sql("CREATE ROLE P_y; CREATE ROLE P_z; CREATE SCHEMA s AUTHORIZATION P_y; GRANT USAGE ON SCHEMA s TO P_z; REVOKE CREATE ON SCHEMA s FROM P_y").await;
        lab.converge("
            roles: [{name: P_y}, {name: P_z}]
            schemas: [{name: s, owner: P_z}]
            grants: [{role: P_y, privileges: [USAGE], object: {type: schema, name: s}}]").await;
        assert_eq!(lab.value("SELECT has_schema_privilege('P_z', 's', 'USAGE') AND has_schema_privilege('P_z', 's', 'CREATE') AND has_schema_privilege('P_y', 's', 'USAGE')").await, "t");
    }

    async fn default_privileges_of_every_kind_converge(lab) {
        lab.sql("CREATE ROLE P_o; CREATE SCHEMA s").await;
        lab.converge("
            roles: [{name: P_r}]
            schemas: [{name: s, owner: P_o}]
            default_privileges:
            - schema: s
              grant:
              - {role: P_r, privileges: [SELECT], on_type: view}
              - {role: P_r, privileges: [INSERT], on_type: table}
              - {role: P_r, privileges: [USAGE], on_type: sequence}
              - {role: P_r, privileges: [EXECUTE], on_type: function}
              - {role: P_r, privileges: [USAGE], on_type: type}
            - owner: P_o
              scope: {type: global}
              grant:
              - {role: PUBLIC, privileges: [EXECUTE], on_type: function, ensure: absent}
              - {role: P_r, privileges: [USAGE], on_type: schema}").await;
        lab.converge("
            roles: [{name: P_r}]
            schemas: [{name: s, owner: P_o}]
            default_privileges:
            - owner: P_o
              scope: {type: global}
              grant: [{role: PUBLIC, privileges: [EXECUTE], on_type: function}]").await;
        assert_eq!(lab.value("SELECT count(*) FROM pg_default_acl WHERE defaclrole = 'P_o'::regrole").await, "0");
    }

    async fn objects_outside_of_schemas(lab) {
        lab.sql("CREATE FOREIGN DATA WRAPPER P_w; CREATE SERVER P_srv FOREIGN DATA WRAPPER P_w; CREATE SCHEMA s;
            CREATE FOREIGN TABLE s.ft (i int, j int) SERVER P_srv; SELECT lo_create(4711)").await;
        lab.converge("
            roles: [{name: P_r}]
            grants:
            - {role: P_r, privileges: [USAGE], object: {type: foreign_data_wrapper, name: P_w}}
            - {role: P_r, privileges: [USAGE], object: {type: foreign_server, name: P_srv}, with_grant_option: true}
            - {role: P_r, privileges: [USAGE], object: {type: language, name: plpgsql}}
            - {role: P_r, privileges: [CREATE], object: {type: tablespace, name: pg_default}}
            - {role: P_r, privileges: [SELECT, UPDATE], object: {type: large_object, name: '4711'}}
            - {role: P_r, privileges: [SET, ALTER SYSTEM], object: {type: parameter, name: log_Statement}}
            - {role: P_r, privileges: [SELECT], object: {type: foreign_table, schema: s, name: '*'}}
            - {role: P_r, privileges: [UPDATE], object: {type: foreign_table, schema: s, name: ft, columns: [j]}}
            - {role: P_r, privileges: [CONNECT], object: {type: database}}
            - {role: PUBLIC, privileges: [TEMPORARY], object: {type: database, name: DATABASE_NAME}, ensure: absent}").await;
        assert_eq!(lab.value("SELECT has_column_privilege('P_r', 's.ft', 'j', 'UPDATE') AND NOT has_column_privilege('P_r', 's.ft', 'i', 'UPDATE')").await, "t");
        lab.sql("DROP OWNED BY P_r").await;
    }

    async fn everything_that_a_role_can_have(lab) {
        lab.converge("
            roles:
            - {name: P_g}
            - name: P_r
              login: true
              createdb: true
              inherit: false
              connection_limit: 3
              comment: it's \"odd\"
              config: {Search_Path: 'App, \"$user\"', work_mem: 64MB, app.tenant: x, role: P_g}
            memberships: [{role: P_g, members: [{name: P_r}]}]").await;
        lab.converge("roles: [{name: P_r}]").await;
        assert_eq!(lab.value("SELECT rolconfig IS NULL AND NOT rolcanlogin FROM pg_roles WHERE rolname = 'P_r'").await, "t");
    }

    async fn what_was_passed_on_is_not_lost(lab) {
        lab.sql("CREATE ROLE P_a; CREATE ROLE P_b; CREATE ROLE P_c; CREATE SCHEMA s; GRANT USAGE ON SCHEMA s TO PUBLIC; CREATE TABLE s.t (i int);
            GRANT SELECT ON s.t TO P_a WITH GRANT OPTION;
            SET ROLE P_a; GRANT SELECT ON s.t TO P_b WITH GRANT OPTION; SET ROLE P_b; GRANT SELECT ON s.t TO P_c; RESET ROLE").await;
        lab.converge("roles: [{name: P_a}]\nschemas: [{name: s}]").await;
        assert_eq!(lab.value("SELECT has_table_privilege('P_a', 's.t', 'SELECT')").await, "f");
        assert_eq!(lab.value("SELECT has_table_privilege('P_b', 's.t', 'SELECT') AND has_table_privilege('P_c', 's.t', 'SELECT')").await, "t");
        lab.sql("GRANT SELECT ON s.t TO P_a WITH GRANT OPTION; SET ROLE P_a; GRANT SELECT ON s.t TO P_c; RESET ROLE").await;
        lab.converge("
            roles: [{name: P_a, external: true}, {name: P_c}]
            grants: [{role: P_a, privileges: [SELECT], object: {type: table, schema: s, name: t}, with_grant_option: false}]").await;
        assert_eq!(lab.value("SELECT has_table_privilege('P_c', 's.t', 'SELECT')").await, "f");
    }

    async fn roles_that_belong_to_the_manifest_hold_nothing_else(lab) {
        lab.sql("CREATE ROLE P_r; CREATE ROLE P_g; GRANT P_g TO P_r; CREATE SCHEMA other; CREATE TABLE other.t (i int, j int);
            GRANT USAGE ON SCHEMA other TO P_r; GRANT INSERT ON other.t TO P_r; GRANT SELECT (i) ON other.t TO P_r;
            ALTER DEFAULT PRIVILEGES IN SCHEMA other GRANT SELECT ON TABLES TO P_r").await;
        let plan = lab.plan("roles: [{name: P_r}]", Mode::Authoritative).await;
        assert!(plan.is_empty(), "{plan:?}");
        assert_eq!(plan.holdings.len(), 5, "{plan:?}");
        lab.converge("roles: [{name: P_r, exclusive: true}]").await;
        assert_eq!(lab.value("SELECT count(*) FROM pg_default_acl WHERE defaclacl::text ~ 'P_r='").await, "0");
        assert_eq!(lab.value("SELECT has_any_column_privilege('P_r', 'other.t', 'SELECT') OR pg_has_role('P_r', 'P_g', 'MEMBER') OR has_schema_privilege('P_r', 'other', 'USAGE')").await, "f");
    }
}

on_every_version! {
    async fn postgresqls_own_memberships_are_nobodys_surplus(lab) {
        // Only planned: predefined roles belong to the server, and other tests use them.
        let exclusive = lab.script("roles: [{name: pg_monitor, external: true, exclusive: true}]").await;
        assert!(!exclusive.contains("FROM \"pg_monitor\""), "{exclusive}");
        let members = lab.script("memberships: [{role: pg_read_all_stats, exclusive: true, members: []}]").await;
        assert!(!members.contains("pg_monitor"), "{members}");
    }

    async fn a_member_outlives_the_one_who_added_it(lab) {
        let passed_on = "REVOKE P_g FROM P_bob; GRANT P_g TO P_alice WITH ADMIN OPTION; SET ROLE P_alice; GRANT P_g TO P_bob WITH ADMIN OPTION; \
                         SET ROLE P_bob; GRANT P_g TO P_carol; RESET ROLE";
        lab.sql("CREATE ROLE P_g; CREATE ROLE P_alice; CREATE ROLE P_bob; CREATE ROLE P_carol").await;
        let members = "SELECT string_agg(DISTINCT member::regrole::text, ' ' ORDER BY member::regrole::text) FROM pg_auth_members WHERE roleid = 'P_g'::regrole";
        for (declared, left) in [
            ("{name: P_bob}", "P_bob"),
            ("{name: P_carol}, {name: P_bob, admin: true}", "P_bob P_carol"),
            ("{name: P_alice}, {name: P_carol}", "P_alice P_carol"),
            ("", ""),
        ] {
            lab.sql(passed_on).await;
            lab.converge(&format!("roles: [{{name: P_g}}]\nmemberships: [{{role: P_g, members: [{declared}]}}]")).await;
            assert_eq!(lab.value(members).await, left, "{declared}");
        }
        // Not even the members of a role that the manifest does not manage are lost.
        lab.sql(passed_on).await;
        lab.converge("roles: [{name: P_alice, exclusive: true}]").await;
        assert_eq!(lab.value(members).await, "P_bob P_carol");
    }

    async fn an_empty_search_path_is_a_search_path(lab) {
        lab.converge("roles: [{name: P_r, config: {search_path: ''}}]").await;
        assert_eq!(lab.value("SELECT rolconfig::text FROM pg_roles WHERE rolname = 'P_r'").await, r#"{"search_path=\"\""}"#);
    }

    async fn what_an_owner_must_not_do_is_revoked_from_it_too(lab) {
        lab.sql("CREATE ROLE P_o; CREATE SCHEMA s; GRANT USAGE ON SCHEMA s TO P_o; CREATE TABLE s.t (i int); ALTER TABLE s.t OWNER TO P_o").await;
        lab.converge("
            roles: [{name: P_o}]
            grants:
            - {role: P_o, privileges: [USAGE], object: {type: schema, name: s}}
            - {role: P_o, privileges: [TRUNCATE], object: {type: table, schema: s, name: t}, ensure: absent}").await;
        assert_eq!(lab.value("SELECT has_table_privilege('P_o', 's.t', 'TRUNCATE') || ' ' || has_table_privilege('P_o', 's.t', 'SELECT')").await, "false true");
    }

    async fn the_password_of_an_external_role_stays(lab) {
        lab.sql("CREATE ROLE P_r LOGIN PASSWORD 'before'").await;
        let before = lab.value("SELECT rolpassword FROM pg_authid WHERE rolname = 'P_r'").await;
        let manifest = lab.file("external.yaml", "roles: [{name: P_r, login: true, external: true, password: {from_env: NEW}}]");
        let url = lab.database.url();
        crate::support::pgroles(&["apply", "-f", &manifest, "--database-url", &url], &[("NEW", "after")]).await.exits(0).says("No changes");
        assert_eq!(lab.value("SELECT rolpassword FROM pg_authid WHERE rolname = 'P_r'").await, before);
    }
}

on_every_version! {
    async fn maintain_is_granted_where_it_exists_and_refused_where_not(lab) {
        lab.sql("CREATE SCHEMA s; CREATE TABLE s.t (i int)").await;
        let manifest = "
            roles: [{name: P_r}]
            grants: [{role: P_r, privileges: [MAINTAIN, SELECT], object: {type: table, schema: s, name: '*'}}]";
        if lab.database.server().version().major() >= 17 {
            lab.converge(manifest).await;
        } else {
            let error = lab.apply_as(manifest, Mode::Authoritative).await.unwrap_err();
            assert!(error.to_string().contains("PostgreSQL 17"), "{error}");
        }
    }
}
