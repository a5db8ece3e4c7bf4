//! Existing objects stay as they were.

use stanchion_supabase::database::Login;
use stanchion_testkit::postgres::{Version, extremes, versions};

use crate::database_dump;
use crate::database_env::{DatabaseEnv, full_request, request};

/// The contents of upstream's image, in short: other owners, other settings, other texts.
const UPSTREAM: &str = "\
CREATE ROLE supabase_admin LOGIN SUPERUSER PASSWORD 'theirs'; \
CREATE ROLE anon NOLOGIN NOINHERIT; CREATE ROLE authenticated NOLOGIN NOINHERIT; \
CREATE ROLE service_role NOLOGIN NOINHERIT BYPASSRLS; \
CREATE ROLE authenticator LOGIN NOINHERIT PASSWORD 'theirs'; GRANT anon, authenticated, service_role TO authenticator; \
CREATE ROLE supabase_auth_admin LOGIN NOINHERIT CREATEROLE; ALTER ROLE supabase_auth_admin SET search_path = auth; \
CREATE ROLE dashboard_user CREATEDB CREATEROLE REPLICATION; \
ALTER ROLE anon SET statement_timeout = '1min'; COMMENT ON ROLE anon IS 'ours'; \
CREATE SCHEMA extensions AUTHORIZATION supabase_admin; CREATE EXTENSION pgcrypto SCHEMA public; \
CREATE SCHEMA auth AUTHORIZATION supabase_admin; CREATE TABLE auth.users (id uuid); \
INSERT INTO auth.users VALUES ('00000000-0000-0000-0000-000000000001'); \
ALTER TABLE auth.users OWNER TO supabase_auth_admin; \
CREATE FUNCTION auth.uid() RETURNS uuid LANGUAGE sql STABLE AS 'SELECT NULL::uuid'; \
ALTER FUNCTION auth.uid() OWNER TO supabase_auth_admin; \
CREATE SCHEMA realtime AUTHORIZATION supabase_admin; CREATE SCHEMA _realtime AUTHORIZATION supabase_admin; \
CREATE TABLE _realtime.tenants (id int); ALTER TABLE _realtime.tenants OWNER TO supabase_admin; \
CREATE SCHEMA graphql_public; \
CREATE FUNCTION graphql_public.graphql(a text) RETURNS text LANGUAGE sql AS 'SELECT a'; \
CREATE PUBLICATION supabase_realtime FOR ALL TABLES; \
CREATE FUNCTION extensions.pgrst_ddl_watch() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END'; \
CREATE EVENT TRIGGER pgrst_ddl_watch ON ddl_command_end EXECUTE FUNCTION extensions.pgrst_ddl_watch(); \
CREATE TABLE public.schema_migrations (version bigint PRIMARY KEY); INSERT INTO public.schema_migrations VALUES (1); \
CREATE FUNCTION public.lower(text) RETURNS text LANGUAGE sql AS 'SELECT ''gotcha''';";

#[tokio::test]
async fn upstreams_own_objects_stay_as_they_are() {
    for version in versions() {
        let db_env = DatabaseEnv::new(version).await;
        db_env.execute(UPSTREAM).await;
        let before = database_dump::without_record(&db_env).await;
        let text = "SELECT pg_get_functiondef('auth.uid()'::regprocedure) || \
                    pg_get_functiondef('extensions.pgrst_ddl_watch()'::regprocedure) || \
                    pg_get_functiondef('graphql_public.graphql(text)'::regprocedure)";
        let texts = db_env.scalar(text).await;
        let superuser = "SELECT rolpassword FROM pg_authid WHERE rolname = 'supabase_admin'";
        let stored = db_env.scalar(superuser).await;

        db_env.initialise(&full_request()).await.unwrap();

        assert_eq!(db_env.scalar(text).await, texts);
        assert_eq!(
            db_env.scalar(superuser).await,
            stored,
            "a superuser's password is not ours"
        );
        assert_eq!(
            db_env
                .column("SELECT version FROM public.schema_migrations")
                .await,
            ["1"]
        );
        assert_eq!(db_env.scalar("SELECT count(*) FROM auth.users").await, "1");
        assert_eq!(
            db_env
                .scalar("SELECT shobj_description('anon'::regrole, 'pg_authid')")
                .await,
            "ours"
        );
        // Lines with privileges are the same or longer; owners, settings, extensions and triggers are the same.
        let after = database_dump::of(&db_env).await;
        for line in before.lines() {
            let kept = match line.split_once(": ") {
                Some((name, rest)) if rest.contains('/') || rest.is_empty() => {
                    after.lines().any(|line| line.starts_with(name))
                }
                // The only attribute that is ever removed: below 16 it is power over the whole server.
                _ if version == Version::V15 && line.starts_with("dashboard_user ") => {
                    let line = line.replace(" CREATEROLE", "");
                    after
                        .lines()
                        .any(|found| grown(&line, found) && !found.contains("CREATEROLE"))
                }
                _ => after.lines().any(|found| found == line || grown(line, found)),
            };
            assert!(kept, "{version}: {line}");
        }
        // The services work on it.
        db_env
            .connect(Login::Rest)
            .await
            .batch_execute("SET ROLE anon; SELECT auth.uid()")
            .await
            .unwrap();
        let auth = db_env.connect(Login::Auth).await;
        auth.batch_execute("ALTER TABLE users ADD COLUMN x int; CREATE TABLE sessions (id int)")
            .await
            .unwrap();
        let realtime = db_env.connect(Login::Realtime).await;
        realtime
            .batch_execute("ALTER TABLE _realtime.tenants ADD COLUMN x int")
            .await
            .unwrap();
        realtime
            .batch_execute("CREATE TABLE realtime.messages (id int)")
            .await
            .unwrap();
        // And then nothing is left to do.
        assert_eq!(
            db_env.initialise(&full_request()).await.unwrap().ran,
            Vec::<&str>::new()
        );
    }
}

/// A role that has become a login, or got an attribute that its service needs.
fn grown(before: &str, after: &str) -> bool {
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let (before, after) = (words(before), words(after));
    before.first() == after.first()
        && before
            .iter()
            .all(|word| word == "NOLOGIN" || after.contains(word))
}

/// The state after STRRL's operator: the services ran as the administrator, who owns the schemas.
#[tokio::test]
async fn what_services_made_as_the_administrator_becomes_theirs() {
    for version in extremes() {
        let db_env = DatabaseEnv::new(version).await;
        db_env.execute(
            "CREATE ROLE supabase_auth_admin NOLOGIN CREATEROLE; CREATE ROLE supabase_storage_admin NOLOGIN CREATEROLE; \
             CREATE ROLE authenticator LOGIN NOINHERIT PASSWORD 'postgres'; \
             CREATE SCHEMA auth; CREATE TYPE auth.factor_type AS ENUM ('totp'); CREATE DOMAIN auth.d AS text; \
             CREATE TYPE auth.pair AS (a int); \
             CREATE TABLE auth.users (id bigserial PRIMARY KEY); CREATE VIEW auth.v AS SELECT FROM auth.users; \
             CREATE SEQUENCE auth.alone; CREATE FUNCTION auth.uid() RETURNS uuid LANGUAGE sql AS 'SELECT NULL::uuid'; \
             CREATE ROLE ann; CREATE TABLE auth.of_ann (id int); ALTER TABLE auth.of_ann OWNER TO ann; \
             CREATE EXTENSION citext SCHEMA auth; \
             CREATE SCHEMA storage; CREATE TABLE storage.buckets (id text); \
             CREATE SCHEMA _realtime; CREATE TABLE _realtime.tenants (id int);",
        )
        .await;
        db_env.execute("CREATE DATABASE _supabase").await;
        db_env.initialise(&full_request()).await.unwrap();
        let auth = db_env.connect(Login::Auth).await;
        auth.batch_execute(
            "ALTER TYPE factor_type ADD VALUE 'phone'; ALTER TABLE users ADD COLUMN x int; ALTER VIEW v RENAME TO w; \
             ALTER SEQUENCE alone RESTART; ALTER DOMAIN d RENAME TO e; ALTER TYPE pair RENAME TO p; \
             CREATE OR REPLACE FUNCTION uid() RETURNS uuid LANGUAGE sql AS 'SELECT NULL::uuid'",
        )
        .await
        .unwrap();
        let owner = db_env
            .scalar("SELECT pg_get_userbyid(relowner) FROM pg_class WHERE relname = 'of_ann'")
            .await;
        assert_eq!(owner, "ann");
        let owner = db_env
            .scalar("SELECT pg_get_userbyid(typowner) FROM pg_type WHERE typname = 'citext'")
            .await;
        assert_eq!(owner, "postgres");
        db_env
            .connect(Login::Storage)
            .await
            .batch_execute("ALTER TABLE buckets ADD COLUMN x int")
            .await
            .unwrap();
        db_env
            .connect(Login::Realtime)
            .await
            .batch_execute("ALTER TABLE _realtime.tenants ADD COLUMN x int")
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn a_missing_extension_is_named_before_anything_is_done() {
    let db_env = DatabaseEnv::new(Version::V18).await;
    // No path for extensions: a server without contrib.
    db_env
        .server
        .reload_with("extension_control_path", "/nowhere")
        .await;
    let problem = db_env.initialise(&request()).await.unwrap_err();
    assert_eq!(problem.reason, "ExtensionMissing");
    assert!(problem.message.contains("contrib"), "{problem}");
    assert_eq!(
        db_env
            .scalar("SELECT count(*) FROM pg_roles WHERE rolname = 'anon'")
            .await,
        "0"
    );
}

/// A recorded step is not run again, and a skipped one is not decided again on every reconcile.
#[tokio::test]
async fn a_step_of_another_version_is_left_alone() {
    let db_env = DatabaseEnv::new(Version::V18).await;
    db_env.initialise(&request()).await.unwrap();
    db_env.execute(
        "UPDATE _stanchion.steps SET hash = 'older' WHERE number = 70; DROP PUBLICATION supabase_realtime",
    )
    .await;
    let outcome = db_env.initialise(&request()).await.unwrap();
    assert_eq!(outcome.ran, Vec::<&str>::new());
    assert!(
        outcome.notes.iter().any(|note| note.about == "publication"),
        "{:?}",
        outcome.notes
    );
    // To run it again, remove it from the record.
    db_env
        .execute("DELETE FROM _stanchion.steps WHERE number = 70")
        .await;
    assert_eq!(db_env.initialise(&request()).await.unwrap().ran, ["publication"]);
}

/// Upstream's analytics and pooler logged in as the superuser, who owns what they made.
#[tokio::test]
async fn analytics_and_the_pooler_own_what_the_administrator_made_for_them() {
    for version in extremes() {
        let db_env = DatabaseEnv::new(version).await;
        db_env.execute("CREATE DATABASE _supabase").await;
        let made = "CREATE SCHEMA _analytics; CREATE TABLE _analytics.schema_migrations (version bigint PRIMARY KEY); \
                    CREATE TABLE _analytics.events (id serial); CREATE VIEW _analytics.recent AS SELECT 1; \
                    CREATE TYPE _analytics.level AS ENUM ('info'); \
                    CREATE FUNCTION _analytics.f() RETURNS int LANGUAGE sql AS 'SELECT 1'; \
                    CREATE SCHEMA _supavisor; CREATE TABLE _supavisor.schema_migrations (version bigint); \
                    CREATE ROLE other; CREATE TABLE _supavisor.others (id int); ALTER TABLE _supavisor.others OWNER TO other; \
                    CREATE TABLE public.mine (id int)";
        db_env.server.execute("_supabase", made).await;
        db_env.initialise(&full_request()).await.unwrap();
        let owners = "SELECT string_agg(DISTINCT owner, ',' ORDER BY owner) FROM ( \
                      SELECT relowner::regrole::text FROM pg_class WHERE relnamespace = to_regnamespace($$SCHEMA$$) \
                      UNION ALL SELECT proowner::regrole::text FROM pg_proc WHERE pronamespace = to_regnamespace($$SCHEMA$$) \
                      UNION ALL SELECT typowner::regrole::text FROM pg_type WHERE typnamespace = to_regnamespace($$SCHEMA$$) \
                      ) AS o (owner)";
        for (schema, expected) in [
            ("_analytics", "supabase_analytics_admin"),
            ("_supavisor", "other,supabase_pooler_admin"),
            ("public", "postgres"),
        ] {
            let owners = owners.replace("SCHEMA", schema);
            let found = db_env.server.scalar("_supabase", &owners).await;
            assert_eq!(found.as_deref(), Some(expected), "{version}: {schema}");
        }
    }
}
