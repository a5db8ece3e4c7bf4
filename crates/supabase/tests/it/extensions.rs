//! Extensions that plain PostgreSQL does not have, as stand-ins with the relevant functions.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use stanchion_supabase::database::Login;
use stanchion_testkit::postgres::{Postgres, Version};
use stanchion_testkit::scratch::Scratch;

use crate::database_env::{DatabaseEnv, full_request};

/// Name, control file and SQL.
const STAND_INS: &[(&str, &str, &str)] = &[
    (
        "pg_net",
        "",
        "CREATE SCHEMA net; CREATE TABLE net.queue (url text); \
         CREATE FUNCTION net.http_get(url text, params jsonb, headers jsonb, timeout_milliseconds integer) RETURNS bigint \
           LANGUAGE sql AS 'INSERT INTO queue VALUES (url) RETURNING 1::bigint'; \
         CREATE FUNCTION net.http_post(url text, body jsonb, params jsonb, headers jsonb, timeout_milliseconds integer) RETURNS bigint \
           LANGUAGE sql AS 'INSERT INTO queue VALUES (url) RETURNING 2::bigint';",
    ),
    (
        "pg_graphql",
        "schema = graphql",
        "CREATE FUNCTION graphql.resolve(query text, variables jsonb, \"operationName\" text, extensions jsonb) RETURNS jsonb \
           LANGUAGE sql AS 'SELECT jsonb_build_object(''asked'', query, ''with'', variables)';",
    ),
    (
        "pgjwt",
        "",
        "CREATE FUNCTION sign(payload json) RETURNS text LANGUAGE sql AS 'SELECT payload::text';",
    ),
    (
        "supabase_vault",
        "schema = vault",
        "DO $$ BEGIN RAISE EXCEPTION 'no key for the vault'; END $$;",
    ),
    ("pg_cron", "schema = cron", "CREATE TABLE cron.job (id int);"),
];

/// A folder where PostgreSQL 18 looks for extensions.
fn folder() -> Scratch {
    let scratch = Scratch::new("stanchion-extensions-").unwrap();
    let place = scratch.path().join("extension");
    fs::create_dir(&place).unwrap();
    for (name, control, sql) in STAND_INS {
        let control = format!("default_version = '1'\nrelocatable = false\n{control}\n");
        // `set_config` in an extension's script would undo its search path; none of them needs it.
        fs::write(place.join(format!("{name}.control")), control).unwrap();
        fs::write(place.join(format!("{name}--1.sql")), sql).unwrap();
    }
    for path in [scratch.path(), &place] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    scratch
}

#[tokio::test]
async fn what_the_server_has_is_used_and_opened() {
    let folder = folder();
    let server = Postgres::builder(Version::V18)
        .setting(
            "extension_control_path",
            &format!("$system:{}", folder.path().display()),
        )
        .setting("wal_level", "logical")
        .start()
        .await;
    server.execute("postgres", "CREATE DATABASE shop").await;
    let db_env = DatabaseEnv {
        server,
        database: "shop".to_owned(),
    };
    let outcome = db_env.initialise(&full_request()).await.unwrap();
    let installed = db_env.column("SELECT extname FROM pg_extension ORDER BY 1").await;
    for extension in ["pg_graphql", "pg_net", "pgjwt"] {
        assert!(installed.contains(&extension.to_owned()), "{installed:?}");
    }
    // An extension that cannot be created is reported with the server's message, and blocks nothing.
    let notes: Vec<_> = outcome.notes.iter().map(ToString::to_string).collect();
    assert_eq!(
        notes,
        ["extension supabase_vault: no key for the vault; so secrets cannot be kept in the database"]
    );

    let rest = db_env.connect(Login::Rest).await;
    let answer = rest
        .query_one("SELECT graphql_public.graphql(query := '{ a }')::text", &[])
        .await
        .err()
        .map(|error| error.code().unwrap().code().to_owned());
    assert_eq!(answer.as_deref(), Some("42501"), "the login itself is nobody");
    rest.batch_execute("SET ROLE anon").await.unwrap();
    let answer = rest
        .query_one("SELECT graphql_public.graphql(query := '{ a }')::text", &[])
        .await
        .unwrap();
    assert_eq!(answer.get::<_, String>(0), r#"{"with": {}, "asked": "{ a }"}"#);

    // A webhook, created in Studio, triggered by a user.
    let meta = db_env.connect(Login::Meta).await;
    meta.batch_execute(
        "CREATE TABLE public.todo (id int); \
         CREATE TRIGGER hook AFTER INSERT ON public.todo FOR EACH ROW \
         EXECUTE FUNCTION supabase_functions.http_request('http://example.com', 'POST', '{}', '{}', '1000')",
    )
    .await
    .unwrap();
    rest.batch_execute("INSERT INTO public.todo VALUES (1)")
        .await
        .unwrap();
    assert_eq!(
        db_env.column("SELECT url FROM net.queue").await,
        ["http://example.com"]
    );
    assert_eq!(
        db_env
            .column("SELECT hook_name FROM supabase_functions.hooks WHERE request_id = 2")
            .await,
        ["hook"]
    );
    rest.batch_execute("SELECT FROM net.queue").await.unwrap_err();

    // An extension that somebody creates later is opened at once.
    db_env.execute("CREATE EXTENSION pg_cron").await;
    meta.batch_execute("SELECT FROM cron.job").await.unwrap();
    meta.batch_execute("INSERT INTO cron.job VALUES (1)")
        .await
        .unwrap_err();
}

#[tokio::test]
async fn without_pg_net_a_webhook_says_what_it_lacks() {
    let db_env = DatabaseEnv::new(Version::V15).await;
    let outcome = db_env.initialise(&full_request()).await.unwrap();
    assert!(outcome.notes.iter().any(|note| note.about == "extension pg_net"));
    db_env
        .execute(
            "CREATE TABLE public.todo (id int); CREATE TRIGGER hook AFTER INSERT ON public.todo FOR EACH ROW \
         EXECUTE FUNCTION supabase_functions.http_request('http://example.com', 'GET', '{}', '{}', '1000')",
        )
        .await;
    let meta = db_env.connect(Login::Meta).await;
    let error = meta
        .batch_execute("INSERT INTO public.todo VALUES (1)")
        .await
        .unwrap_err();
    assert!(
        error.as_db_error().unwrap().message().contains("pg_net"),
        "{error:?}"
    );
    let answer = db_env
        .scalar("SELECT graphql_public.graphql() ->> 'errors'")
        .await;
    assert!(answer.contains("not enabled"), "{answer}");
}
