//! Locks, retries, saved plans, round trips, permissions.

use std::time::Duration;

use futures::future::join_all;
use stanchion_roles::plan::Mode;
use stanchion_testkit::proxy::Proxy;
use stanchion_testkit::wait::eventually;

use crate::on_every_version;

on_every_version! {
    async fn many_at_once_all_succeed(lab) {
        lab.sql("CREATE SCHEMA s; CREATE TABLE s.t (i int)").await;
        let manifests: Vec<_> = (0..6).map(|n| format!("
            roles: [{{name: P_r{n}}}]
            grants: [{{role: P_r{n}, privileges: [SELECT], object: {{type: table, schema: s, name: '*'}}}}]")).collect();
        for result in join_all(manifests.iter().map(|manifest| lab.apply_as(manifest, Mode::Authoritative))).await {
            result.unwrap();
        }
        assert_eq!(lab.value("SELECT count(*) FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = 's.t'::regclass AND a.grantee <> c.relowner").await, "6");
    }

    async fn what_others_change_at_the_same_time_is_tried_again(lab) {
        lab.sql("CREATE SCHEMA s; CREATE TABLE s.t (i int); CREATE ROLE P_x").await;
        let other = lab.database.admin().await;
        other.batch_execute(&lab.text("BEGIN; GRANT SELECT ON s.t TO P_x")).await.unwrap();
        let manifest = "roles: [{name: P_r}]\ngrants: [{role: P_r, privileges: [INSERT], object: {type: table, schema: s, name: t}}]";
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        let release = async {
            eventually(Duration::from_mins(1), "the apply waits for the row", async || lab.value(waiting).await != "0").await;
            other.batch_execute("COMMIT").await.unwrap();
        };
        let (applied, ()) = tokio::join!(lab.apply_as(manifest, Mode::Authoritative), release);
        applied.unwrap();
        assert_eq!(lab.value("SELECT has_table_privilege('P_r', 's.t', 'INSERT') AND has_table_privilege('P_x', 's.t', 'SELECT')").await, "t");
        let failed = lab.database.log().iter().filter(|entry| format!("{entry:?}").contains("tuple concurrently updated")).count();
        assert!(failed > 0, "nothing failed, so nothing was tried again");
    }

    async fn a_saved_plan_is_applied_or_refused(lab) {
        lab.sql("CREATE SCHEMA s; CREATE TABLE s.a (i int)").await;
        let manifest = "roles: [{name: P_r}]\ngrants: [{role: P_r, privileges: [SELECT], object: {type: table, schema: s, name: '*'}}]";
        let plan = lab.file("plan.json", "");
        let url = lab.database.url();
        lab.run("diff", manifest, &["--save-plan", &plan]).await.exits(2);
        lab.sql("CREATE TABLE s.b (i int)").await;
        let apply = ["apply", "--plan", &plan, "--database-url", &url];
        crate::support::pgroles(&apply, &[]).await.exits(1).says("the database has changed since the plan was made");
        lab.run("diff", manifest, &["--save-plan", &plan]).await.exits(2);
        crate::support::pgroles(&apply, &[]).await.exits(0).says("Applied 2 change(s)");
        let other = lab.database.server().database().await;
        let elsewhere = ["apply", "--plan", &plan, "--database-url", &other.url()];
        crate::support::pgroles(&elsewhere, &[]).await.exits(1).says("the plan was made for database");
    }

    async fn few_round_trips_whatever_the_size(lab) {
        lab.sql("DO $$ BEGIN FOR i IN 1..20 LOOP EXECUTE format('CREATE SCHEMA s%s', i); FOR j IN 1..5 LOOP EXECUTE format('CREATE TABLE s%s.t%s (i int)', i, j); END LOOP; END LOOP; END $$").await;
        let schemas: Vec<_> = (1..=20).map(|n| format!("{{name: s{n}, profiles: [r]}}")).collect();
        let manifest = format!("
            role_pattern: 'P_{{schema}}-{{profile}}'
            profiles: {{r: {{grants: [{{privileges: [SELECT], object: {{type: table, name: '*'}}}}]}}}}
            schemas: [{}]", schemas.join(", "));
        let proxy = Proxy::postgres(lab.database.server().address()).await;
        let url = lab.database.url().replace(&format!(":{}/", lab.database.server().port()), &format!(":{}/", proxy.port()));
        proxy.forget();
        lab.run_as(&url, "apply", &manifest, &[], &[]).await.exits(0).says("40 change(s)");
        let trips = proxy.seen().round_trips;
        assert!(trips <= 12, "an apply took {trips} round trips");
        proxy.forget();
        lab.run_as(&url, "diff", &manifest, &[], &[]).await.exits(0);
        let trips = proxy.seen().round_trips;
        assert!(trips <= 8, "a diff took {trips} round trips");
    }

    async fn somebody_without_the_right_is_told_so_before_anything_happens(lab) {
        lab.sql("CREATE ROLE P_e LOGIN CREATEROLE PASSWORD 'pw-of-e'; CREATE SCHEMA s; GRANT USAGE ON SCHEMA s TO P_e; CREATE TABLE s.t (i int); GRANT SELECT ON s.t TO P_e").await;
        let manifest = "roles: [{name: P_r}]\ngrants: [{role: P_r, privileges: [SELECT], object: {type: table, schema: s, name: '*'}}]";
        let url = lab.database.url_of(&lab.text("P_e"), "pw-of-e");
        lab.run_as(&url, "apply", manifest, &[], &[]).await.exits(1).says("UnsatisfiableWildcardGrant");
        lab.sql("GRANT SELECT ON s.t TO P_e WITH GRANT OPTION").await;
        lab.run_as(&url, "apply", manifest, &[], &[]).await.exits(0);
        lab.run_as(&url, "diff", manifest, &[], &[]).await.exits(0).says("No changes needed");
        assert_eq!(lab.value("SELECT has_table_privilege('P_r', 's.t', 'SELECT')").await, "t");
        // As creator it administers the role; that membership is not declared and stays.
        lab.run_as(&url, "diff", "roles: [{name: P_r}]", &[], &[]).await.exits(0);
        lab.run_as(&url, "apply", "roles: [{name: P_e, login: true}]", &[], &[]).await.exits(1).says("would take CREATEROLE");
    }

    async fn a_revocation_that_postgresql_would_ignore_is_refused(lab) {
        lab.sql("CREATE ROLE P_e LOGIN CREATEROLE PASSWORD 'pw-of-e'; CREATE ROLE P_r; CREATE SCHEMA s; GRANT USAGE ON SCHEMA s TO P_e, P_r; CREATE TABLE s.t (i int);
            GRANT SELECT ON s.t TO P_e WITH GRANT OPTION; GRANT SELECT ON s.t TO P_r").await;
        let url = lab.database.url_of(&lab.text("P_e"), "pw-of-e");
        let absent = "grants: [{role: P_r, privileges: [SELECT], object: {type: table, schema: s, name: t}, ensure: absent}]";
        lab.run_as(&url, "apply", absent, &[], &[]).await.exits(1).says("UnsatisfiableRevoke");
        if lab.database.server().version().major() < 16 {
            return;
        }
        lab.sql("CREATE ROLE P_g; CREATE ROLE P_m; GRANT P_g TO P_e WITH ADMIN OPTION; GRANT P_g TO P_m").await;
        let none = "memberships: [{role: P_g, exclusive: true, members: [{name: P_e, admin: true}]}]\nroles: [{name: P_g, external: true}]";
        lab.run_as(&url, "apply", none, &[], &[]).await.exits(1).says("UnsatisfiableMembershipChange");
        // What it gives itself is another membership, which it may change.
        let inherits = "memberships: [{role: P_g, members: [{name: P_m, admin: true}]}]\nroles: [{name: P_g, external: true}]";
        lab.run_as(&url, "apply", inherits, &[], &[]).await.exits(0);
        lab.run_as(&url, "diff", inherits, &[], &[]).await.exits(0).says("No changes needed");
    }

    async fn a_member_of_the_owner_with_a_grant_option_of_its_own_revokes_as_the_owner(lab) {
        lab.sql("CREATE ROLE P_owner; CREATE ROLE P_e LOGIN CREATEROLE PASSWORD 'pw-of-e'; GRANT P_owner TO P_e; CREATE ROLE P_x; CREATE ROLE P_h;
            CREATE SCHEMA s AUTHORIZATION P_owner; GRANT USAGE ON SCHEMA s TO PUBLIC; CREATE TABLE s.t (i int, j int); ALTER TABLE s.t OWNER TO P_owner; SET ROLE P_owner;
            GRANT SELECT ON s.t TO P_e WITH GRANT OPTION; GRANT UPDATE (i) ON s.t TO P_e WITH GRANT OPTION;
            GRANT SELECT, INSERT ON s.t TO P_x; GRANT UPDATE (i) ON s.t TO P_x; RESET ROLE").await;
        let url = lab.database.url_of(&lab.text("P_e"), "pw-of-e");
        let absent = "grants: [
            {role: P_x, privileges: [SELECT], object: {type: table, schema: s, name: t}, ensure: absent},
            {role: P_x, privileges: [UPDATE], object: {type: table, schema: s, name: t, columns: [i]}, ensure: absent}]";
        lab.run_as(&url, "apply", absent, &[], &[]).await.exits(0);
        lab.run_as(&url, "diff", absent, &[], &[]).await.exits(0).says("No changes needed");
        let held = "SELECT concat_ws(' ', has_table_privilege('P_x', 's.t', 'SELECT'), has_column_privilege('P_x', 's.t', 'i', 'UPDATE'),
            has_table_privilege('P_x', 's.t', 'INSERT'))";
        assert_eq!(lab.value(held).await, "f f t");
        // What a role granted on a column that may no longer do so, too.
        lab.sql("GRANT SELECT ON s.t TO P_h WITH GRANT OPTION; SET ROLE P_h; GRANT SELECT (i) ON s.t TO P_x; RESET ROLE;
            REVOKE GRANT OPTION FOR SELECT ON s.t FROM P_h CASCADE; GRANT SELECT (i) ON s.t TO P_h").await;
        let absent = "grants: [{role: P_x, privileges: [SELECT], object: {type: table, schema: s, name: t, columns: [i]}, ensure: absent}]";
        assert_eq!(lab.value("SELECT has_column_privilege('P_x', 's.t', 'i', 'SELECT')").await, "t");
        lab.run_as(&url, "apply", absent, &[], &[]).await.exits(0);
        lab.run_as(&url, "diff", absent, &[], &[]).await.exits(0).says("No changes needed");
        let held = "SELECT concat_ws(' ', has_column_privilege('P_x', 's.t', 'i', 'SELECT'), has_column_privilege('P_h', 's.t', 'i', 'SELECT'))";
        assert_eq!(lab.value(held).await, "f t");
    }

    async fn what_others_than_the_owner_granted_does_not_keep_a_role(lab) {
        lab.sql("CREATE ROLE P_bob; CREATE ROLE P_x; CREATE ROLE P_y; CREATE SCHEMA s; GRANT USAGE ON SCHEMA s TO PUBLIC; CREATE TABLE s.t (i int, j int);
            GRANT SELECT, UPDATE ON s.t TO P_bob WITH GRANT OPTION; SET ROLE P_bob;
            GRANT SELECT ON s.t TO P_x WITH GRANT OPTION; GRANT UPDATE (i) ON s.t TO P_x; SET ROLE P_x; GRANT SELECT ON s.t TO P_y; RESET ROLE").await;
        lab.converge("retirements: [{role: P_x, drop_owned: true}]").await;
        assert_eq!(lab.value("SELECT count(*) FROM pg_roles WHERE rolname = 'P_x'").await, "0");
        // A role that had it from the dropped one keeps it.
        assert_eq!(lab.value("SELECT has_table_privilege('P_y', 's.t', 'SELECT')").await, "t");
    }

    async fn what_was_passed_on_several_times_is_revoked(lab) {
        lab.sql("CREATE ROLE P_a; CREATE ROLE P_b; CREATE ROLE P_c; CREATE ROLE P_d; CREATE SCHEMA s; GRANT USAGE ON SCHEMA s TO PUBLIC; CREATE TABLE s.t (i int);
            GRANT SELECT ON s.t TO P_a WITH GRANT OPTION; SET ROLE P_a; GRANT SELECT ON s.t TO P_b WITH GRANT OPTION; SET ROLE P_b; GRANT SELECT ON s.t TO P_c WITH GRANT OPTION;
            SET ROLE P_c; GRANT SELECT ON s.t TO P_d; RESET ROLE").await;
        lab.converge("roles: [{name: P_a}, {name: P_b}, {name: P_c}, {name: P_d}]\nschemas: [{name: s}]").await;
    }

    async fn who_creates_a_role_can_be_its_member(lab) {
        if lab.database.server().version().major() < 16 {
            return;
        }
        lab.sql("CREATE ROLE P_e LOGIN CREATEROLE PASSWORD 'pw-of-e'; GRANT CREATE ON DATABASE DATABASE_NAME TO P_e").await;
        let url = lab.database.url_of(&lab.text("P_e"), "pw-of-e");
        let member = "roles: [{name: P_g}]\nmemberships: [{role: P_g, members: [{name: P_e}]}]";
        // Its membership as creator does not let it use the role.
        lab.run_as(&url, "apply", "roles: [{name: P_g}]", &[], &[]).await.exits(0);
        lab.run_as(&url, "apply", member, &[], &[]).await.exits(0).says("1 change(s)");
        lab.run_as(&url, "diff", member, &[], &[]).await.exits(0).says("No changes needed");
        assert_eq!(lab.value("SELECT pg_has_role('P_e', 'P_g', 'USAGE') AND pg_has_role('P_e', 'P_g', 'SET')").await, "t");
        // What the server grants it by itself is no surplus, and what it owns by then is no surprise.
        lab.sql("ALTER ROLE P_e SET createrole_self_grant = 'set, inherit'").await;
        let owns = "
            roles: [{name: P_a}, {name: P_r}]
            schemas: [{name: s, owner: P_a}]
            grants: [{role: P_r, privileges: [USAGE], object: {type: schema, name: s}}]
            default_privileges: [{schema: s, grant: [{role: P_r, privileges: [SELECT], on_type: table}]}]";
        lab.run_as(&url, "apply", owns, &[], &[]).await.exits(0);
        lab.run_as(&url, "diff", owns, &[], &[]).await.exits(0).says("No changes needed");
        assert_eq!(lab.value("SELECT has_schema_privilege('P_r', 's', 'USAGE')").await, "t");
    }

    async fn generated_manifests_describe_what_is_there(lab) {
        // Roles belong to the server: on a server of its own the manifest of this test is complete.
        let server = stanchion_testkit::postgres::Postgres::start(lab.database.server().version()).await;
        let database = server.database().await;
        database.execute("
            CREATE ROLE own; CREATE ROLE app LOGIN CONNECTION LIMIT 3 VALID UNTIL '2031-01-01 00:00+02'; COMMENT ON ROLE app IS 'it''s';
            ALTER ROLE app SET search_path = a, \"B b\"; GRANT pg_monitor TO app; GRANT own TO app WITH ADMIN OPTION;
            CREATE TYPE public.color AS ENUM ('red'); CREATE FUNCTION public.f(x color, y int[]) RETURNS int LANGUAGE sql AS 'SELECT 1';
            GRANT EXECUTE ON FUNCTION public.f TO app; CREATE TABLE public.t (i int, j int); GRANT SELECT (j) ON public.t TO app; GRANT INSERT ON public.t TO app WITH GRANT OPTION;
            ALTER DEFAULT PRIVILEGES FOR ROLE own IN SCHEMA public GRANT SELECT ON TABLES TO app WITH GRANT OPTION;
            ALTER DEFAULT PRIVILEGES FOR ROLE own IN SCHEMA public GRANT INSERT ON TABLES TO app;
            CREATE ROLE helper; GRANT own TO helper WITH ADMIN OPTION; CREATE ROLE twice; SET ROLE helper; GRANT own TO twice; RESET ROLE; GRANT own TO twice WITH ADMIN OPTION").await;
        for schema in ["one", "two", "three"] {
            database.execute(&format!("CREATE SCHEMA {schema} AUTHORIZATION own; CREATE ROLE \"{schema}-reader\"; CREATE TABLE {schema}.t_{schema} (i int);
                GRANT USAGE ON SCHEMA {schema} TO \"{schema}-reader\"; GRANT SELECT ON {schema}.t_{schema} TO \"{schema}-reader\";
                ALTER DEFAULT PRIVILEGES FOR ROLE own IN SCHEMA {schema} GRANT SELECT ON TABLES TO \"{schema}-reader\"")).await;
        }
        let url = database.url();
        for args in [&[][..], &["--suggest-profiles"]] {
            let generate = [&["generate", "--database-url", &url], args].concat();
            let yaml = crate::support::pgroles(&generate, &[]).await.exits(0).hides("null").out;
            assert_eq!(crate::support::pgroles(&generate, &[]).await.out, yaml, "two runs differ");
            assert!(yaml.contains("password_valid_until: 2030-12-31T22:00:00Z") || yaml.contains("password_valid_until: \"2030-12-31T22:00:00Z\""), "{yaml}");
            let file = lab.file("generated.yaml", &yaml);
            crate::support::pgroles(&["validate", "--strict", "-f", &file], &[]).await.exits(0);
            crate::support::pgroles(&["diff", "--strict", "-f", &file, "--database-url", &url], &[]).await.exits(0).says("No changes needed");
            assert_eq!(yaml.contains("profiles:\n  reader:"), !args.is_empty(), "{yaml}");
            assert_eq!(yaml.contains("one-reader"), args.is_empty(), "{yaml}");
        }
    }
}

/// Every login can hold the lock, so it must not block an apply.
#[tokio::test]
async fn a_lock_held_by_another_session_blocks_no_policy() {
    let version = *stanchion_testkit::postgres::versions().first().unwrap();
    let lab = crate::support::Lab::new(version).await;
    let holder = lab.database.admin().await;
    let key = stanchion_postgres::lock::ROLES;
    holder
        .batch_execute(&format!("BEGIN; SELECT pg_advisory_xact_lock({key})"))
        .await
        .unwrap();
    let desired = lab.desired("roles: [{name: P_r}]");
    let mut session = lab.session().await;
    let options = stanchion_roles::apply::Options::default();
    let plan = stanchion_roles::apply::apply(&mut session, &desired, &options)
        .await
        .unwrap();
    assert_eq!(plan.changes.len(), 1);
}

on_every_version! {
    // A SECURITY DEFINER function would otherwise run with the new owner's privileges.
    async fn what_a_retired_role_owned_never_runs_as_its_heir(lab) {
        lab.sql("CREATE ROLE P_heir SUPERUSER; CREATE ROLE P_mole; CREATE SCHEMA P_s AUTHORIZATION P_mole; SET ROLE P_mole; \
                 CREATE FUNCTION P_s.pwn() RETURNS text LANGUAGE sql SECURITY DEFINER AS 'SELECT current_user::text'; RESET ROLE").await;
        let manifest = "roles: [{name: P_heir, external: true}]\nretirements: [{role: P_mole, reassign_owned_to: P_heir, drop_owned: true}]";
        lab.apply_as(manifest, Mode::Authoritative).await.unwrap();
        let owner = "SELECT proowner::regrole::text FROM pg_proc WHERE proname = 'pwn' AND pronamespace = 'P_s'::regnamespace";
        assert_eq!(lab.value(owner).await, "P_heir");
        let armed = "SELECT prosecdef OR has_function_privilege('public', oid, 'EXECUTE') FROM pg_proc \
                     WHERE proname = 'pwn' AND pronamespace = 'P_s'::regnamespace";
        assert_eq!(lab.value(armed).await, "f");
    }
}
