//! Every PostgreSQL version starts, answers, logs, and can be stopped.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use stanchion_testkit::{
    postgres::{ADMIN, ADMIN_PASSWORD, Database, Postgres, Tls, Version, versions},
    unique,
    wait::eventually,
};

use crate::DEADLINE;

#[tokio::test]
async fn every_version_takes_a_query_and_logs_it() {
    for version in versions() {
        let database = Database::of(version).await;
        let number = database.scalar("SHOW server_version_num").await.unwrap();
        assert_eq!(number.parse::<u32>().unwrap() / 10_000, version.major());
        database
            .execute("CREATE TABLE t (a int); INSERT INTO t VALUES (1), (NULL)")
            .await;
        let rows = database.query("SELECT a FROM t ORDER BY a").await;
        assert_eq!(rows, [[Some("1".to_owned())].to_vec(), vec![None]]);
        let statements = database.server().log().statements(database.name());
        assert!(
            statements.iter().any(|sql| sql.starts_with("CREATE TABLE t")),
            "{statements:?}"
        );
        assert!(
            database
                .log()
                .iter()
                .all(|entry| entry.database == database.name())
        );
    }
}

#[tokio::test]
async fn bound_values_are_logged_as_details() {
    let database = Database::of(Version::V15).await;
    let session = database.admin().await;
    session.query("SELECT $1::text", &[&"needle"]).await.unwrap();
    let log = database.log();
    assert!(
        log.iter()
            .any(|entry| entry.statement() == Some("SELECT $1::text")),
        "{log:#?}"
    );
    assert!(
        log.iter()
            .any(|entry| entry.severity == "DETAIL" && entry.message.contains("needle"))
    );
}

#[tokio::test]
async fn passwords_are_checked_and_failures_logged() {
    let database = Database::of(Version::V15).await;
    let role = unique::name("ann");
    database
        .execute(&format!("CREATE ROLE {role} LOGIN PASSWORD 'p@ss/:word'"))
        .await;
    let url = database.url_of(&role, "p@ss/:word");
    let config: tokio_postgres::Config = url.parse().unwrap();
    assert_eq!(config.get_password(), Some(b"p@ss/:word".as_slice()));
    database.connect(&role, "p@ss/:word").await.unwrap();
    assert!(database.connect(&role, "wrong").await.is_err());
    assert!(database.log().iter().any(|entry| entry.sqlstate == "28P01"));
}

#[tokio::test]
async fn databases_are_apart_and_servers_have_identities() {
    let (one, two) = (Database::of(Version::V15).await, Database::of(Version::V15).await);
    assert_ne!(one.name(), two.name());
    let mut identities = HashSet::new();
    for server in [
        Postgres::shared(Version::V15).await,
        &Postgres::start(Version::V15).await,
    ] {
        let identity = server
            .scalar("postgres", "SELECT system_identifier FROM pg_control_system()")
            .await;
        assert!(
            identities.insert(identity.unwrap()),
            "two servers with one identity"
        );
    }
}

#[tokio::test]
async fn a_server_stops_and_starts_again_with_its_data() {
    for version in versions() {
        let started = Instant::now();
        let server = Postgres::start(version).await;
        eprintln!("PostgreSQL {version} started in {:?}", started.elapsed());
        server.execute("postgres", "CREATE TABLE kept (a int)").await;
        let session = server.connect(ADMIN, ADMIN_PASSWORD, "postgres").await.unwrap();
        server.stop().await;
        assert!(session.simple_query("SELECT 1").await.is_err());
        assert!(server.connect(ADMIN, ADMIN_PASSWORD, "postgres").await.is_err());
        server.resume().await;
        server.crash().await;
        server.resume().await;
        server.execute("postgres", "SELECT a FROM kept").await;
    }
}

/// A process that starts again after a kill finds the previous server, which is still shutting down.
#[tokio::test]
async fn a_server_that_is_still_ending_is_waited_for() {
    let server = Postgres::start(Version::V15).await;
    tokio::join!(server.stop(), server.resume());
    assert_eq!(server.scalar("postgres", "SELECT 1").await.as_deref(), Some("1"));
}

#[tokio::test]
async fn tls_can_be_required() {
    let server = Postgres::builder(Version::V15)
        .tls(Tls::default())
        .setting("work_mem", "5MB")
        .start()
        .await;
    assert_eq!(server.scalar("postgres", "SHOW ssl").await.as_deref(), Some("on"));
    assert_eq!(
        server.scalar("postgres", "SHOW work_mem").await.as_deref(),
        Some("5MB")
    );
    assert!(server.authority().unwrap().pem().contains("BEGIN CERTIFICATE"));
    server
        .execute("postgres", "CREATE ROLE ann LOGIN PASSWORD 'secret'")
        .await;
    let error = server.connect("ann", "secret", "postgres").await.unwrap_err();
    let message = error.as_db_error().unwrap().message();
    assert!(message.contains("no encryption"), "{message}");
}

#[tokio::test]
async fn a_frozen_server_answers_nobody_new_and_ends_all_the_same() {
    let server = Postgres::start(Version::V15).await;
    server.reload_with("log_min_duration_statement", "0").await;
    eventually(DEADLINE, "the setting to be taken", async || {
        let setting = server.scalar("postgres", "SHOW log_min_duration_statement").await;
        setting.as_deref() == Some("0")
    })
    .await;
    server.freeze().await;
    {
        let mut connecting = std::pin::pin!(server.connect(ADMIN, ADMIN_PASSWORD, "postgres"));
        let moment = Duration::from_millis(200);
        assert!(tokio::time::timeout(moment, connecting.as_mut()).await.is_err());
        server.thaw();
        connecting.await.unwrap();
    }
    server.freeze().await;
    drop(server);
}
