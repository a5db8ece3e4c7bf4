//! Secrets must not appear in errors, in the server's log, or in printed statements.

use std::fmt::Write as _;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use secrecy::{ExposeSecret, SecretString};
use stanchion_postgres::{Batch, Begin, Error, Query, Session, Statement, scram};
use stanchion_testkit::postgres::{Database, Postgres, Version, versions};
use stanchion_testkit::unique;

use crate::support::{SALT, connect, session, target};

/// Everything that is visible of an error.
fn shown(error: &Error) -> String {
    let mut text = format!("{error} {error:?} {error:#?}");
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        let _ = write!(text, " {inner} {inner:?}");
        source = inner.source();
    }
    text
}

/// Long parts of the verifier; each would be enough to attack it.
fn parts(verifier: &SecretString) -> Vec<String> {
    verifier
        .expose_secret()
        .split(['$', ':'])
        .filter(|part| part.len() > 15)
        .map(str::to_owned)
        .collect()
}

fn set_password(role: &str, verifier: &SecretString) -> Statement {
    Statement::new("ALTER ROLE ")
        .ident(role)
        .sql(" PASSWORD ")
        .secret(verifier)
}

#[tokio::test]
async fn verifiers_are_not_in_the_servers_log() {
    for version in versions() {
        let server = Postgres::builder(version)
            .setting("log_min_duration_statement", "0")
            .setting("log_min_error_statement", "error")
            .start()
            .await;
        server.execute("postgres", "CREATE ROLE app").await;
        let mut session = connect(&target(&server.url("postgres"))).await.unwrap();
        let verifier = scram::verifier(&"canary-password".into(), &SALT);
        let good = set_password("app", &verifier);
        let marker = Statement::new("COMMENT ON ROLE app IS 'after-the-secret'");
        let fails = Statement::new("SELECT 1/0");
        let batches = [
            vec![good.clone(), marker.clone()],
            vec![fails.clone(), good.clone()],
            vec![good.clone(), fails],
            vec![set_password("no such role", &verifier)],
            vec![good.clone().sql(" NONSENSE")],
            vec![Statement::new("SELECT ").secret(&verifier).sql("::int")],
        ];
        for statements in batches {
            if let Err(error) = session.apply(&Batch::new(statements)).await {
                assert_absent(&shown(&error), &verifier);
            }
        }
        let (transaction, _) = session.begin(&Begin::default(), &[]).await.unwrap();
        transaction.commit(std::slice::from_ref(&good)).await.unwrap();
        session.execute(&good).await.unwrap();
        let guarded = Begin {
            guarded: true,
            ..Begin::default()
        };
        let (mut transaction, _) = session.begin(&guarded, &[]).await.unwrap();
        let look = [Query::new("SELECT 1")];
        transaction
            .apply_and_read(std::slice::from_ref(&good), &look)
            .await
            .unwrap();
        transaction.commit(&[]).await.unwrap();

        let log = server.log();
        assert_absent(log.text(), &verifier);
        assert!(!log.text().contains("canary-password"));
        // Afterwards everything is logged as before.
        session.apply(&Batch::new(vec![marker])).await.unwrap();
        assert!(server.log().text().contains("after-the-secret"));
        let stored = server
            .scalar(
                "postgres",
                "SELECT rolpassword FROM pg_authid WHERE rolname = 'app'",
            )
            .await;
        assert_eq!(stored.as_deref(), Some(verifier.expose_secret()));
    }
}

fn assert_absent(text: &str, verifier: &SecretString) {
    for part in parts(verifier) {
        assert!(!text.contains(&part), "part of the verifier in:\n{text}");
    }
}

#[tokio::test]
async fn who_may_not_guard_the_log_still_sets_passwords() {
    let database = Database::of(Version::V15).await;
    let [admin, role] = ["admin", "app"].map(unique::name);
    database
        .execute(&format!("CREATE ROLE {admin} LOGIN CREATEROLE PASSWORD 'p'"))
        .await;
    let mut session = connect(&target(&database.url_of(&admin, "p"))).await.unwrap();
    let verifier = scram::verifier(&"canary-of-the-plain".into(), &SALT);
    let create = Statement::new("CREATE ROLE ")
        .ident(&role)
        .sql(" LOGIN PASSWORD ")
        .secret(&verifier);
    session.apply(&Batch::new(vec![create])).await.unwrap();
    connect(&target(&database.url_of(&role, "canary-of-the-plain")))
        .await
        .unwrap();
    assert!(!database.server().log().text().contains("canary-of-the-plain"));
}

#[tokio::test]
async fn passwords_are_not_in_errors_of_connecting() {
    let server = Postgres::shared(Version::V15).await;
    let database = unique::name("none");
    let urls = [
        server.url_of("postgres", "canary!", &database),
        server.url_of("nobody", "canary!", "postgres"),
        "postgres://postgres:canary!@127.0.0.1:1/postgres".to_owned(),
        "postgres://postgres:canary!@no-such-host.invalid/postgres".to_owned(),
        server.url_of("postgres", "canary!", "postgres") + "?sslmode=require",
        server.url_of("postgres", "canary!", "postgres") + "?options=canary!",
    ];
    for url in urls {
        let error = connect(&target(&url)).await.unwrap_err();
        let text = shown(&error);
        assert!(!text.contains("canary"), "{text}");
        assert!(!text.contains("postgres://"), "{text}");
    }
}

/// Values that often break quoting, and random ones.
fn hostile(runner: &mut TestRunner) -> String {
    let strategy = proptest::prop_oneof![
        proptest::sample::select(vec![
            "x SUPERUSER",
            "x\"; DROP ROLE postgres; --",
            "p' SUPERUSER VALID UNTIL 'infinity",
            "\\'; SELECT pg_sleep(3600); --",
            "$$; DROP ROLE postgres; $$",
            "E'\\'",
            "/*",
            "--",
            "\u{0}",
            "é\u{301}\u{202e}",
        ])
        .prop_map(str::to_owned),
        "[\"'\\\\;$/*\\-a-z\u{0}-\u{1f}é漢]{1,12}",
        ".{1,15}",
    ];
    let value = strategy.new_tree(runner).unwrap().current();
    value.chars().filter(|c| *c != '\0').collect::<String>() + "."
}

async fn comment_and_password(
    client: &tokio_postgres::Client,
    role: &str,
) -> (Option<String>, Option<String>, bool) {
    let row = client
        .query_one(
            "SELECT shobj_description(oid, 'pg_authid'), rolpassword, rolsuper FROM pg_authid WHERE rolname = $1",
            &[&role],
        )
        .await
        .unwrap();
    (row.get(0), row.get(1), row.get(2))
}

#[tokio::test]
async fn hostile_values_do_only_what_was_meant() {
    let database = Database::of(Version::V15).await;
    let mut session = session(&database).await;
    let admin = database.admin().await;
    let mut runner = TestRunner::deterministic();
    let prefix = unique::name("h");
    let before = database
        .scalar("SELECT count(*) FROM pg_roles WHERE rolsuper")
        .await;
    for index in 0..200 {
        let role = format!("{prefix}{index}{}", hostile(&mut runner));
        let role: String = role.chars().take(30).collect();
        let comment = hostile(&mut runner);
        let verifier = scram::verifier(&hostile(&mut runner).into(), &SALT);
        let statements = vec![
            Statement::new("CREATE ROLE ")
                .ident(&role)
                .sql(" PASSWORD ")
                .secret(&verifier),
            Statement::new("COMMENT ON ROLE ")
                .ident(&role)
                .sql(" IS ")
                .literal(&comment),
        ];
        session.apply(&Batch::new(statements)).await.unwrap();
        let (stored_comment, stored_password, superuser) = comment_and_password(&admin, &role).await;
        assert_eq!(stored_comment.as_deref(), Some(comment.as_str()));
        assert_eq!(stored_password.as_deref(), Some(verifier.expose_secret()));
        assert!(!superuser);
        let query = Query::new("SELECT $1::text, $2::text[]")
            .text(&comment)
            .texts(vec![role.clone()]);
        let rows = session.query(&query).await.unwrap();
        assert_eq!(rows[0].get::<_, String>(0), comment);
        assert_eq!(rows[0].get::<_, Vec<String>>(1), std::slice::from_ref(&role));
        session
            .apply(&Batch::new(vec![Statement::new("DROP ROLE ").ident(&role)]))
            .await
            .unwrap();
    }
    assert_eq!(
        database
            .scalar("SELECT count(*) FROM pg_roles WHERE rolsuper")
            .await,
        before
    );
}

#[tokio::test]
async fn hostile_secrets_are_in_no_error() {
    let database = Database::of(Version::V15).await;
    let mut session = session(&database).await;
    let mut runner = TestRunner::deterministic();
    for _ in 0..200 {
        let secret = format!("canary-{}-canary", hostile(&mut runner));
        for error in failures(&mut session, &secret.as_str().into()).await {
            let text = shown(&error);
            assert!(!text.contains("canary"), "{text}");
            assert!(error.sqlstate().is_some(), "the code stays: {text}");
        }
    }
}

/// Errors in which a server usually repeats its input.
async fn failures(session: &mut Session, secret: &SecretString) -> Vec<Error> {
    let statements = [
        Statement::new("SELECT ").secret(secret).sql("::int"),
        Statement::new("SELECT ").secret(secret).sql(" ").secret(secret),
        Statement::new("SELECT pg_catalog.set_config('statement_timeout', ")
            .secret(secret)
            .sql(", false)"),
        Statement::new("DO $$ BEGIN RAISE EXCEPTION USING MESSAGE = pg_catalog.current_query(); END $$ -- ")
            .secret(&secret.expose_secret().replace('\n', " ").into()),
        Statement::new("CREATE ROLE x VALID UNTIL ").secret(secret),
    ];
    let mut errors = Vec::new();
    for statement in statements {
        errors.push(
            session
                .apply(&Batch::new(vec![statement.clone()]))
                .await
                .unwrap_err(),
        );
        errors.push(session.query(&Query::from(statement)).await.unwrap_err());
    }
    errors
}

#[tokio::test]
async fn a_value_with_nul_is_refused_and_not_shown() {
    let database = Database::of(Version::V15).await;
    let mut session = session(&database).await;
    let statement = Statement::new("SELECT ").secret(&"canary\0canary".into());
    let error = session.apply(&Batch::new(vec![statement])).await.unwrap_err();
    assert!(!shown(&error).contains("canary"), "{}", shown(&error));
    assert!(session.is_reusable());
    session.query(&Query::new("SELECT 1")).await.unwrap();
}
