//! Neither somebody who was in a database first, nor a login of another project, gains anything.

use stanchion_kernel::Class;
use stanchion_supabase::database::{self, Login};
use stanchion_testkit::postgres::{Version, extremes, versions};

use crate::database_env::{
    self, DatabaseEnv, KEY, full_request, password, pools, request, request_of, target,
};

/// A login that may only create in the database, and in public.
async fn with_a_stranger(version: Version) -> DatabaseEnv {
    let db_env = DatabaseEnv::new(version).await;
    db_env.execute(
        "CREATE ROLE dev LOGIN PASSWORD 'dev'; GRANT CREATE ON DATABASE shop TO dev; GRANT CREATE ON SCHEMA public TO dev",
    )
    .await;
    db_env
}

/// What the stranger does, as itself.
async fn plant(db_env: &DatabaseEnv, sql: &str) {
    let dev = db_env
        .server
        .connect("dev", "dev", &db_env.database)
        .await
        .unwrap();
    dev.batch_execute(sql).await.unwrap();
}

async fn is_superuser(db_env: &DatabaseEnv) -> bool {
    db_env
        .scalar("SELECT rolsuper FROM pg_roles WHERE rolname = 'dev'")
        .await
        == "t"
}

/// A function that makes the stranger a superuser if a superuser runs it.
const GRAB: &str = "CREATE FUNCTION public.grab() RETURNS text LANGUAGE plpgsql AS $$ BEGIN \
    IF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN ALTER ROLE dev SUPERUSER; END IF; \
    RETURN 'x'; END $$;";

/// What each one plants, and what the refusal names.
const TRAPS: [(&str, &str, &str); 5] = [
    (
        "the function of an event trigger that the operator makes",
        "CREATE SCHEMA extensions; \
         CREATE FUNCTION extensions.pgrst_ddl_watch() RETURNS event_trigger LANGUAGE plpgsql AS \
         'BEGIN PERFORM public.grab(); END';",
        "schema \"extensions\"",
    ),
    (
        "a trigger on the record",
        "CREATE SCHEMA _stanchion; \
         CREATE TABLE _stanchion.installation (only_row bool DEFAULT true, project text, suffix text); \
         CREATE FUNCTION _stanchion.f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM public.grab(); RETURN NEW; END'; \
         CREATE TRIGGER t BEFORE INSERT ON _stanchion.installation FOR EACH ROW EXECUTE FUNCTION _stanchion.f();",
        "schema \"_stanchion\"",
    ),
    (
        "a default on the record",
        "CREATE SCHEMA _stanchion; \
         CREATE TABLE _stanchion.installation (only_row text DEFAULT public.grab(), project text, suffix text);",
        "schema \"_stanchion\"",
    ),
    (
        "a view in the place of Auth's history",
        "CREATE SCHEMA auth; CREATE TABLE auth.users (id int); CREATE TABLE auth.schema_migrations (version text); \
         CREATE VIEW public.schema_migrations AS SELECT public.grab() AS version;",
        "schema \"auth\"",
    ),
    (
        "a view in the place of the record",
        "CREATE SCHEMA _stanchion; \
         CREATE VIEW _stanchion.installation AS SELECT public.grab() AS project, '' AS suffix; \
         CREATE TABLE _stanchion.steps (number int, hash text, skipped text, seen text);",
        "schema \"_stanchion\"",
    ),
];

/// a7: five ways to be in the database first.
#[tokio::test]
async fn what_a_stranger_made_first_is_neither_read_nor_run() {
    for version in versions() {
        let db_env = with_a_stranger(version).await;
        for (what, trap, named) in TRAPS {
            plant(&db_env, &format!("{GRAB}{trap}")).await;
            for problem in [
                db_env.initialise(&request()).await.unwrap_err(),
                db_env.inspect(&request()).await.unwrap_err(),
            ] {
                let expected = (Class::Human, "ObjectNotTrusted");
                assert_eq!(
                    (problem.class, problem.reason),
                    expected,
                    "{version} {what}: {problem}"
                );
                assert!(problem.message.contains(named), "{what}: {problem}");
                assert!(problem.message.contains("role \"dev\""), "{what}: {problem}");
            }
            assert!(!is_superuser(&db_env).await, "{version}: {what}");
            plant(&db_env, "DROP OWNED BY dev CASCADE").await;
            db_env
                .execute("GRANT CREATE ON DATABASE shop TO dev; GRANT CREATE ON SCHEMA public TO dev")
                .await;
        }
        // And then nothing blocks it.
        db_env.initialise(&request()).await.unwrap();
        assert!(!is_superuser(&db_env).await);
    }
}

/// A table of that name is common, and most belong to an application: they are left alone, and block nothing.
#[tokio::test]
async fn a_foreign_history_is_not_read() {
    for version in versions() {
        let db_env = with_a_stranger(version).await;
        db_env.execute(
            "CREATE SCHEMA auth; CREATE TABLE auth.users (id int); CREATE TABLE auth.schema_migrations (version text)",
        )
        .await;
        plant(
            &db_env,
            &format!("{GRAB} CREATE VIEW public.schema_migrations AS SELECT public.grab() AS version"),
        )
        .await;
        db_env.initialise(&request()).await.unwrap();
        assert!(!is_superuser(&db_env).await, "{version}: the view");
        db_env.empty().await;
        db_env.execute(
            "CREATE ROLE dev LOGIN PASSWORD 'dev'; GRANT CREATE ON DATABASE shop TO dev; GRANT CREATE ON SCHEMA public TO dev; \
             CREATE SCHEMA auth; CREATE TABLE auth.users (id int); CREATE TABLE auth.schema_migrations (version text)",
        )
        .await;
        // A type with a cast that runs code.
        plant(
            &db_env,
            "CREATE TYPE public.v AS (x text); \
             CREATE FUNCTION public.grab(public.v) RETURNS text LANGUAGE plpgsql AS $$ BEGIN \
               IF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN ALTER ROLE dev SUPERUSER; END IF; \
               RETURN 'x'; END $$; \
             CREATE CAST (public.v AS text) WITH FUNCTION public.grab(public.v); \
             CREATE TABLE public.schema_migrations (version public.v); \
             INSERT INTO public.schema_migrations VALUES (ROW('20210710035447')), (ROW('20210722035447'))",
        )
        .await;
        db_env.initialise(&request()).await.unwrap();
        assert!(!is_superuser(&db_env).await, "{version}: the cast");
    }
}

/// What a stranger plants in an existing project, in places that the project itself opened.
#[tokio::test]
async fn what_a_service_plants_is_not_run_as_the_administrator() {
    for version in extremes() {
        let db_env = DatabaseEnv::new(version).await;
        db_env.initialise(&request()).await.unwrap();
        // As after an upgrade that brings a new text of the step.
        db_env
            .execute(
                "DROP EVENT TRIGGER pgrst_ddl_watch; DROP FUNCTION extensions.pgrst_ddl_watch(); \
             DELETE FROM _stanchion.steps WHERE number = 80",
            )
            .await;
        let studio = db_env.connect(Login::Meta).await;
        studio
            .batch_execute(
                "CREATE FUNCTION extensions.pgrst_ddl_watch() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END'",
            )
            .await
            .unwrap();
        let problem = db_env.initialise(&request()).await.unwrap_err();
        assert_eq!(problem.reason, "ObjectNotTrusted");
        assert!(problem.message.contains("pgrst_ddl_watch"), "{problem}");
        assert!(problem.message.contains("dashboard_user"), "{problem}");
        db_env.execute("DROP FUNCTION extensions.pgrst_ddl_watch()").await;
        db_env.initialise(&request()).await.unwrap();
    }
}

/// An event trigger belongs to a superuser, but its function can have any owner: it would run with every change of the
/// operator.
#[tokio::test]
async fn nothing_runs_beside_a_strangers_event_trigger() {
    for version in extremes() {
        let db_env = with_a_stranger(version).await;
        plant(
            &db_env,
            &format!(
                "{GRAB} CREATE FUNCTION public.watch() RETURNS event_trigger LANGUAGE plpgsql AS \
                 'BEGIN PERFORM public.grab(); END'"
            ),
        )
        .await;
        db_env
            .execute("CREATE EVENT TRIGGER watch ON ddl_command_end EXECUTE FUNCTION public.watch()")
            .await;
        let problem = db_env.initialise(&request()).await.unwrap_err();
        assert_eq!(problem.reason, "ObjectNotTrusted");
        assert!(problem.message.contains("event trigger \"watch\""), "{problem}");
        assert!(!is_superuser(&db_env).await);
    }
}

#[tokio::test]
async fn the_internal_database_is_nobody_elses() {
    for version in extremes() {
        let db_env = DatabaseEnv::new(version).await;
        db_env
            .execute("CREATE ROLE dev LOGIN CREATEDB PASSWORD 'dev'")
            .await;
        plant(&db_env, "CREATE DATABASE _supabase").await;
        let problem = db_env.initialise(&full_request()).await.unwrap_err();
        assert_eq!(problem.reason, "ObjectNotTrusted");
        assert!(problem.message.contains("\"_supabase\""), "{problem}");
        // A project that does not need it is not affected.
        db_env.initialise(&request()).await.unwrap();
        // A schema in an internal database that is ours.
        db_env
            .execute("ALTER DATABASE _supabase OWNER TO postgres; GRANT CREATE ON DATABASE _supabase TO dev")
            .await;
        let dev = db_env.server.connect("dev", "dev", "_supabase").await.unwrap();
        dev.batch_execute("CREATE SCHEMA _analytics").await.unwrap();
        let problem = db_env.initialise(&full_request()).await.unwrap_err();
        assert!(problem.message.contains("schema \"_analytics\""), "{problem}");
    }
}

/// a8: every login of a second project, against the first one's database.
#[tokio::test]
async fn no_login_of_one_project_reads_anothers_tables() {
    for version in versions() {
        let db_env = DatabaseEnv::new(version).await;
        db_env.initialise(&full_request()).await.unwrap();
        db_env.execute(
            "CREATE TABLE public.diary (secret text); ALTER TABLE public.diary ENABLE ROW LEVEL SECURITY; \
             INSERT INTO public.diary VALUES ('mine')",
        )
        .await;
        db_env.server.execute("postgres", "CREATE DATABASE other").await;
        let (other, request) = (target(&db_env.server.url("other")), request_of("default/other"));
        let second = database_env::initialise(&pools(), &other, &request)
            .await
            .unwrap();
        for login in Login::ALL {
            for (name, database) in [
                (second.names.of(login), "shop"),
                (second.names.of(login), "_supabase"),
                (login.role().to_owned(), "other"),
            ] {
                let refused = db_env.server.connect(&name, &password(login), database).await;
                let error = refused
                    .err()
                    .unwrap_or_else(|| panic!("{version}: {name} gets into {database}"));
                let code = error.code().map(|code| code.code().to_owned());
                assert_eq!(code.as_deref(), Some("42501"), "{version} {name}: {error:?}");
            }
        }
        // Studio's login leads neither to a shell nor to another login.
        let studio = db_env
            .server
            .connect(&second.names.of(Login::Meta), &password(Login::Meta), "other")
            .await
            .unwrap();
        for attempt in [
            "DO $$ BEGIN EXECUTE format('GRANT pg_execute_server_program TO %I', current_user); END $$",
            "ALTER ROLE authenticator PASSWORD 'x'",
            "GRANT authenticator TO CURRENT_USER",
            "GRANT CONNECT ON DATABASE shop TO CURRENT_USER",
        ] {
            let refused = studio.batch_execute(attempt).await;
            let allowed = "SELECT has_database_privilege($1, 'shop', 'CONNECT')";
            let gained: bool = studio
                .query_one(allowed, &[&second.names.of(Login::Meta)])
                .await
                .unwrap()
                .get(0);
            assert!(refused.is_err() || !gained, "{version}: {attempt}");
        }
        // Each can connect to its own database, and its tables are unchanged.
        for (login, database) in [
            (Login::Rest, "shop"),
            (Login::Storage, "shop"),
            (Login::Analytics, "_supabase"),
        ] {
            db_env
                .server
                .connect(login.role(), &password(login), database)
                .await
                .unwrap();
        }
        let rest = db_env.connect(Login::Rest).await;
        rest.batch_execute("SET ROLE service_role; SELECT FROM public.diary")
            .await
            .unwrap();
    }
}

/// The state after an earlier version: PUBLIC may connect, and Studio's login may create and change roles on 15.
#[tokio::test]
async fn an_older_project_is_closed_and_its_users_stay() {
    for version in versions() {
        let db_env = DatabaseEnv::new(version).await;
        db_env.initialise(&request()).await.unwrap();
        db_env.execute(
            "GRANT CONNECT ON DATABASE shop TO PUBLIC; ALTER ROLE dashboard_user CREATEROLE; \
             DELETE FROM _stanchion.steps WHERE number = 52; \
             CREATE ROLE owner_of_a_table LOGIN PASSWORD 'x'; CREATE TABLE public.t (id int); \
             ALTER TABLE public.t OWNER TO owner_of_a_table; \
             CREATE ROLE reader LOGIN PASSWORD 'x'; GRANT SELECT ON public.t TO reader; \
             CREATE ROLE team; GRANT SELECT ON public.t TO team; CREATE ROLE member LOGIN PASSWORD 'x' IN ROLE team; \
             CREATE ROLE exporter LOGIN PASSWORD 'x'; GRANT pg_monitor TO exporter; \
             CREATE ROLE nobody LOGIN PASSWORD 'x'",
        )
        .await;
        assert_eq!(
            db_env.initialise(&request()).await.unwrap().ran,
            ["who may connect"]
        );
        for (name, expected) in [
            ("owner_of_a_table", true),
            ("reader", true),
            ("member", true),
            ("exporter", true),
            ("nobody", false),
        ] {
            let connected = db_env.server.connect(name, "x", "shop").await.is_ok();
            assert_eq!(connected, expected, "{version}: {name}");
        }
        for login in &Login::ALL[..7] {
            db_env.connect(*login).await;
        }
        let bound = version != Version::V15;
        let may = "SELECT rolcreaterole FROM pg_roles WHERE rolname = 'dashboard_user'";
        assert_eq!(db_env.scalar(may).await == "t", bound, "{version}");
        // If somebody opens it again, that is reported.
        db_env.execute("GRANT CONNECT ON DATABASE shop TO PUBLIC").await;
        let notes = db_env.inspect(&request()).await.unwrap().unwrap().notes;
        let reported = notes
            .iter()
            .any(|note| note.message.contains("REVOKE CONNECT ON DATABASE"));
        assert!(reported, "{notes:?}");
    }
}

/// Somebody who can write to the record has no other role of the server dropped.
#[tokio::test]
async fn a_role_that_the_operator_cannot_have_created_stays() {
    for version in versions() {
        let db_env = DatabaseEnv::new(version).await;
        db_env.execute("COMMENT ON DATABASE shop IS 'see the wiki'").await;
        db_env.initialise(&full_request()).await.unwrap();
        let comment = "SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = 'shop'";
        let marked = db_env.scalar(comment).await;
        let begin = "see the wiki [stanchion SupabaseProject default/shop uid adopted v";
        assert!(marked.starts_with(begin), "{version}: {marked}");
        assert!(
            db_env.inspect(&full_request()).await.unwrap().is_some(),
            "{version}"
        );
        db_env
            .execute(
                "CREATE ROLE payroll LOGIN; INSERT INTO _stanchion.made VALUES ('role', 'payroll'); \
                 CREATE SCHEMA hr; INSERT INTO _stanchion.made VALUES ('schema', 'hr')",
            )
            .await;
        let left = database::remove(&pools(), &db_env.target(), "default/shop", &KEY).await;
        assert_eq!(left.unwrap(), [""; 0], "{version}");
        let there = "SELECT count(*) FROM pg_roles r, pg_namespace n \
                    WHERE r.rolname = 'payroll' AND r.rolcanlogin AND n.nspname = 'hr'";
        assert_eq!(db_env.scalar(there).await, "1", "{version}");
        assert_eq!(db_env.scalar(comment).await, "see the wiki", "{version}");
    }
}
