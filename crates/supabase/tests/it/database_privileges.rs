//! Each service has the privileges that it needs, and no more.

use stanchion_supabase::database::Login;
use stanchion_testkit::postgres::{Version, extremes};

use crate::database_env::{DatabaseEnv, full_request, password};

/// A login, its statement, and whether the server accepts it.
type Case = (Login, &'static str, bool);

const CASES: &[Case] = &[
    // PostgREST becomes the role of a request, and has no privileges itself.
    (Login::Rest, "SET ROLE anon", true),
    (Login::Rest, "SET ROLE authenticated", true),
    (Login::Rest, "SET ROLE service_role", true),
    (Login::Rest, "SET ROLE supabase_auth_admin", false),
    (Login::Rest, "SET ROLE postgres", false),
    (Login::Rest, "SELECT FROM public.todo", false),
    (Login::Rest, "SET ROLE anon; SELECT FROM public.todo", true),
    (Login::Rest, "SET ROLE anon; SELECT FROM public.before", false),
    (Login::Rest, "SET ROLE anon; SELECT FROM auth.users", false),
    (
        Login::Rest,
        "SET ROLE authenticated; SELECT FROM auth.users",
        false,
    ),
    (
        Login::Rest,
        "SET ROLE anon; SELECT auth.uid(), auth.role(), auth.email(), auth.jwt()",
        true,
    ),
    (Login::Rest, "SET ROLE anon; CREATE TABLE public.x ()", false),
    (
        Login::Rest,
        "SET ROLE service_role; CREATE TABLE auth.x ()",
        false,
    ),
    (
        Login::Rest,
        "SET ROLE anon; SELECT extensions.gen_random_uuid()",
        true,
    ),
    (Login::Rest, "SET ROLE anon; SELECT FROM _stanchion.steps", false),
    (
        Login::Rest,
        "SET ROLE anon; SELECT _stanchion.open_extension('pg_net')",
        false,
    ),
    (
        Login::Rest,
        "SET ROLE anon; SELECT pgbouncer.get_auth('authenticator')",
        false,
    ),
    (
        Login::Rest,
        "SET ROLE anon; SELECT graphql_public.graphql(query := '{ a }')",
        true,
    ),
    // Auth has its schema, and nothing else.
    (
        Login::Auth,
        "CREATE TABLE sessions (id int); ALTER TABLE users ADD COLUMN x int; DROP TABLE sessions",
        true,
    ),
    (
        Login::Auth,
        "CREATE TYPE level AS ENUM ('a'); ALTER TYPE level ADD VALUE 'b'",
        true,
    ),
    (
        Login::Auth,
        "CREATE OR REPLACE FUNCTION auth.uid() RETURNS uuid LANGUAGE sql STABLE AS 'SELECT NULL::uuid'",
        true,
    ),
    (
        Login::Auth,
        "GRANT SELECT ON auth.users TO postgres WITH GRANT OPTION",
        true,
    ),
    (Login::Auth, "CREATE TABLE public.x ()", false),
    (Login::Auth, "CREATE TABLE storage.x ()", false),
    (Login::Auth, "CREATE SCHEMA x", false),
    (Login::Auth, "CREATE ROLE x", false),
    (Login::Auth, "SET ROLE service_role", false),
    (Login::Auth, "SELECT FROM public.todo", false),
    // Storage migrates its schema, and acts as the role of a request.
    (
        Login::Storage,
        "CREATE TABLE buckets (id int); ALTER TABLE buckets ENABLE ROW LEVEL SECURITY",
        true,
    ),
    (
        Login::Storage,
        "GRANT ALL ON storage.buckets TO postgres WITH GRANT OPTION",
        true,
    ),
    (
        Login::Storage,
        "CREATE FUNCTION storage.f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        true,
    ),
    (
        Login::Storage,
        "SELECT set_config('role', 'service_role', true)",
        true,
    ),
    (Login::Storage, "SELECT set_config('role', 'anon', true)", true),
    (Login::Storage, "SET ROLE supabase_auth_admin", false),
    (Login::Storage, "CREATE TABLE auth.x ()", false),
    (Login::Storage, "CREATE TABLE public.x ()", false),
    (Login::Storage, "SELECT FROM auth.users", false),
    // Realtime migrates two schemas, reassigns what it creates, and replicates.
    (Login::Realtime, "CREATE TABLE _realtime.tenants (id int)", true),
    (
        Login::Realtime,
        "CREATE TABLE realtime.messages (id int); ALTER TABLE realtime.messages OWNER TO supabase_realtime_admin; \
         CREATE PUBLICATION messages FOR TABLE realtime.messages",
        true,
    ),
    (Login::Realtime, "GRANT supabase_realtime_admin TO postgres", true),
    (
        Login::Realtime,
        "CREATE FUNCTION realtime.f() RETURNS int LANGUAGE sql SET log_min_messages = fatal AS 'SELECT 1'; SELECT realtime.f()",
        true,
    ),
    (
        Login::Realtime,
        "SELECT pg_create_logical_replication_slot('a_slot', 'pgoutput', true)",
        true,
    ),
    (Login::Realtime, "SET ROLE authenticated", true),
    (Login::Realtime, "CREATE TABLE public.x ()", false),
    (Login::Realtime, "CREATE TABLE auth.x ()", false),
    (Login::Realtime, "SELECT FROM auth.users", false),
    (Login::Realtime, "SET ROLE supabase_auth_admin", false),
    (Login::Realtime, "CREATE ROLE x", false),
    // Studio acts as an owner of the project, and is not a superuser.
    (Login::Meta, "CREATE TABLE public.made_in_studio (id int)", true),
    (Login::Meta, "SELECT FROM auth.users", true),
    (
        Login::Meta,
        "CREATE POLICY own ON auth.users FOR SELECT USING (true)",
        true,
    ),
    (Login::Meta, "SET ROLE anon", true),
    (Login::Meta, "CREATE SCHEMA mine", true),
    (
        Login::Meta,
        "ALTER PUBLICATION supabase_realtime SET (publish = 'insert')",
        true,
    ),
    (Login::Meta, "SELECT query FROM pg_stat_activity", true),
    (Login::Meta, "CREATE ROLE from_studio", true),
    (Login::Meta, "ALTER ROLE postgres PASSWORD 'x'", false),
    (Login::Meta, "SELECT rolpassword FROM pg_authid", false),
    (Login::Meta, "COPY public.todo TO PROGRAM 'true'", false),
    (Login::Meta, "SET ROLE postgres", false),
    // The read-only login only reads.
    (Login::ReadOnly, "SELECT FROM public.before", true),
    (Login::ReadOnly, "INSERT INTO public.todo VALUES (1)", false),
    (Login::ReadOnly, "CREATE TABLE public.x ()", false),
    // Webhooks and functions.
    (Login::Functions, "SET ROLE service_role", true),
    (Login::Functions, "SELECT FROM supabase_functions.hooks", true),
    (Login::Functions, "SELECT FROM auth.users", false),
    // The pooler reads verifiers, but not of superusers, and nothing else.
    (
        Login::PoolerAuth,
        "SELECT 1 / count(*) FROM pgbouncer.get_auth('authenticator') WHERE password LIKE 'SCRAM%'",
        true,
    ),
    (
        Login::PoolerAuth,
        "SELECT 1 / count(*) FROM pgbouncer.get_auth('postgres')",
        false,
    ),
    (Login::PoolerAuth, "SELECT FROM public.todo", false),
];

#[tokio::test]
async fn services_can_do_what_they_need_and_no_more() {
    for version in extremes() {
        let db_env = DatabaseEnv::new(version).await;
        db_env.execute("CREATE TABLE public.before (id int)").await;
        db_env.initialise(&full_request()).await.unwrap();
        // As if Auth had started, and the administrator had created a table.
        let auth = db_env.connect(Login::Auth).await;
        auth.batch_execute("CREATE TABLE users (id uuid)").await.unwrap();
        db_env.execute("CREATE TABLE public.todo (id int)").await;
        for (login, sql, allowed) in CASES {
            let session = db_env.connect(*login).await;
            let result = session.batch_execute(sql).await;
            let said = result
                .as_ref()
                .err()
                .and_then(|error| error.as_db_error().map(ToString::to_string));
            // Below 16 a role that may create roles may do almost anything: no login may.
            let allowed = *allowed && !(version == Version::V15 && sql.starts_with("CREATE ROLE"));
            assert_eq!(result.is_ok(), allowed, "{version}: {login:?}: {sql}: {said:?}");
        }
    }
}

#[tokio::test]
async fn analytics_and_pooler_are_at_home_in_a_database_of_their_own() {
    for version in extremes() {
        let db_env = DatabaseEnv::new(version).await;
        db_env.initialise(&full_request()).await.unwrap();
        for (login, own, other) in [
            (Login::Analytics, "_analytics", "_supavisor"),
            (Login::Pooler, "_supavisor", "_analytics"),
        ] {
            let session = db_env
                .server
                .connect(login.role(), &password(login), "_supabase")
                .await
                .unwrap();
            session
                .batch_execute(&format!("CREATE TABLE {own}.t (id int)"))
                .await
                .unwrap();
            session
                .batch_execute("CREATE EXTENSION IF NOT EXISTS citext")
                .await
                .unwrap();
            session
                .batch_execute(&format!("CREATE TABLE {other}.t (id int)"))
                .await
                .unwrap_err();
        }
        assert!(
            db_env
                .server
                .connect("authenticator", &password(Login::Rest), "_supabase")
                .await
                .is_err()
        );
        let analytics = db_env
            .server
            .connect(
                "supabase_analytics_admin",
                &password(Login::Analytics),
                "_supabase",
            )
            .await
            .unwrap();
        analytics
            .batch_execute("CREATE PUBLICATION logflare_pub FOR TABLE _analytics.t")
            .await
            .unwrap();
    }
}

/// `PostgREST` is notified of a schema change by any role.
#[tokio::test]
async fn changes_of_the_schema_are_announced() {
    for version in extremes() {
        let db_env = DatabaseEnv::new(version).await;
        db_env.initialise(&full_request()).await.unwrap();
        let (client, mut connection) = tokio_postgres::Config::new()
            .host("127.0.0.1")
            .port(db_env.server.port())
            .user("authenticator")
            .password(password(Login::Rest))
            .dbname("shop")
            .connect(tokio_postgres::NoTls)
            .await
            .unwrap();
        let (sender, mut heard) = tokio::sync::mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Some(Ok(message)) =
                std::future::poll_fn(|context| connection.poll_message(context)).await
            {
                if let tokio_postgres::AsyncMessage::Notification(notification) = message {
                    sender.send(notification.payload().to_owned()).unwrap();
                }
            }
        });
        client.batch_execute("LISTEN pgrst").await.unwrap();
        let meta = db_env.connect(Login::Meta).await;
        for change in [
            "CREATE TABLE public.t ()",
            "COMMENT ON TABLE public.t IS 'x'",
            "DROP TABLE public.t",
        ] {
            meta.batch_execute(change).await.unwrap();
            assert_eq!(heard.recv().await.as_deref(), Some("reload schema"), "{change}");
        }
        // A temporary table needs no reload: the next notification is that of the last statement.
        meta.batch_execute("CREATE TEMP TABLE mine ()").await.unwrap();
        meta.batch_execute("NOTIFY pgrst, 'the end'").await.unwrap();
        assert_eq!(heard.recv().await.as_deref(), Some("the end"));
    }
}
