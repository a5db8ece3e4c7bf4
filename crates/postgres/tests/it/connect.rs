//! Sessions: their settings, their limits, their end.

use std::sync::Arc;
use std::time::Duration;

use stanchion_postgres::{Batch, Class, ConnectionConfig, Kind, Query, Session, Statement, Timeouts};
use stanchion_testkit::postgres::{ADMIN, ADMIN_PASSWORD, Database, Postgres, Version, versions};
use stanchion_testkit::proxy::{Cut, Proxy};
use stanchion_testkit::{port, wait};

use crate::support::{WAIT_TIMEOUT, connect, session, target, through};

#[tokio::test]
async fn settings_on_every_version() {
    for version in versions() {
        let database = Database::of(version).await;
        let session = session(&database).await;
        assert_eq!(session.version() / 10_000, version.major());
        let rows = session
            .query(&Query::new(
                "SELECT current_setting('statement_timeout'), current_setting('lock_timeout'), \
                 current_setting('idle_in_transaction_session_timeout'), current_setting('search_path'), \
                 current_setting('application_name')",
            ))
            .await
            .unwrap();
        let values: Vec<String> = (0..5).map(|index| rows[0].get(index)).collect();
        assert_eq!(
            values,
            ["1min", "10s", "1min", "pg_catalog, pg_temp", "stanchion"]
        );
    }
}

#[tokio::test]
async fn refused_unknown_and_silent() {
    let at = |host: &str, port| {
        ConnectionConfig::new(host, port, "postgres", ADMIN)
            .unwrap()
            .with_password(ADMIN_PASSWORD.into())
    };
    let error = connect(&at("127.0.0.1", port::free())).await.unwrap_err();
    assert_eq!((error.kind(), error.class()), (Kind::Refused, Class::Transient));
    assert!(error.is_connectivity());

    let error = connect(&at("no-such-host.invalid", 5432)).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.class()),
        (Kind::Unreachable, Class::Transient)
    );

    // Accepts and never answers.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = at("127.0.0.1", listener.local_addr().unwrap().port());
    let timeouts = Timeouts {
        connect: Duration::from_millis(50),
        ..Timeouts::default()
    };
    let error = Session::connect(&silent, &timeouts, Arc::new(()))
        .await
        .unwrap_err();
    assert_eq!((error.kind(), error.class()), (Kind::TimedOut, Class::Transient));
    assert_eq!(error.server(), silent.to_string());
}

#[tokio::test]
async fn wrong_password_role_and_database() {
    let database = Database::of(Version::V15).await;
    let cases = [
        (database.url_of(ADMIN, "wrong"), "28P01"),
        (database.url_of("nobody-knows", "wrong"), "28P01"),
        (database.server().url("no-such-database"), "3D000"),
    ];
    for (url, code) in cases {
        let error = connect(&target(&url)).await.unwrap_err();
        assert_eq!(
            (error.sqlstate(), error.class()),
            (Some(code), Class::Dependency),
            "{error}"
        );
        assert!(error.is_connectivity());
    }
    let missing = target(&database.url()).with_set_role(Some("no such role".into()));
    let error = connect(&missing).await.unwrap_err();
    assert_eq!(error.sqlstate(), Some("22023"), "{error}");
}

#[tokio::test]
async fn work_is_done_as_another_role() {
    let database = Database::of(Version::V15).await;
    let role = format!("{} \"x", stanchion_testkit::unique::name("other"));
    let quoted = stanchion_postgres::quote::identifier(&role);
    database.execute(&format!("CREATE ROLE {quoted}")).await;
    let session = connect(&target(&database.url()).with_set_role(Some(role.clone())))
        .await
        .unwrap();
    let rows = session
        .query(&Query::new("SELECT current_user::text"))
        .await
        .unwrap();
    assert_eq!(rows[0].get::<_, String>(0), role);
}

/// The owner of a database cannot choose as whom we work there; who administers our login can.
#[tokio::test]
async fn a_database_does_not_choose_the_role() {
    let database = Database::of(Version::V15).await;
    let name = |what: &str| stanchion_testkit::unique::name(what).replace('-', "_");
    let (login, own, other) = (name("login"), name("own"), name("other"));
    let of_login = database.url_of(&login, "p");
    database
        .execute(&format!(
            "CREATE ROLE {own}; CREATE ROLE {other}; CREATE ROLE {login} LOGIN PASSWORD 'p' IN ROLE {own}, {other}; \
             ALTER DATABASE \"{}\" SET role = '{other}'",
            database.name()
        ))
        .await;
    let who = async |target: &ConnectionConfig| {
        let session = connect(target).await.unwrap();
        let rows = session.query(&Query::new("SELECT current_user::text")).await;
        rows.unwrap()[0].get::<_, String>(0)
    };
    let target = target(&of_login);
    assert_eq!(who(&target).await, login);
    assert_eq!(
        who(&target.clone().with_set_role(Some(other.clone()))).await,
        other
    );
    let with_options = self::target(&format!("{of_login}?options=-c%20role%3D{own}"));
    assert_eq!(who(&with_options).await, own);
    let set = format!("ALTER ROLE {login} SET role = '{own}'");
    database.server().execute("postgres", &set).await;
    assert_eq!(who(&target).await, own);
}

/// The server itself ignores the setting then, with a warning.
#[tokio::test]
async fn a_role_that_the_login_may_not_set_does_not_lock_it_out() {
    for version in versions().into_iter().filter(|version| version.major() >= 16) {
        let database = Database::of(version).await;
        let name = |what: &str| stanchion_testkit::unique::name(what).replace('-', "_");
        let (login, own) = (name("login"), name("own"));
        let target = target(&database.url_of(&login, "p"));
        database
            .execute(&format!(
                "CREATE ROLE {own}; CREATE ROLE {login} LOGIN PASSWORD 'p'; ALTER ROLE {login} SET role = '{own}'"
            ))
            .await;
        for (may_set, role) in [("FALSE", &login), ("TRUE", &own)] {
            database
                .execute(&format!("GRANT {own} TO {login} WITH SET {may_set}"))
                .await;
            let session = connect(&target).await.unwrap();
            let rows = session.query(&Query::new("SELECT current_user::text")).await;
            assert_eq!(
                rows.unwrap()[0].get::<_, String>(0),
                *role,
                "{version}: {may_set}"
            );
        }
    }
}

#[tokio::test]
async fn statements_and_locks_have_limits() {
    let database = Database::of(Version::V15).await;
    database.execute("CREATE TABLE public.t (x int)").await;
    let timeouts = Timeouts {
        statement: Duration::from_millis(200),
        lock: Duration::from_millis(50),
        ..Timeouts::default()
    };
    let mut session = Session::connect(&target(&database.url()), &timeouts, Arc::new(()))
        .await
        .unwrap();
    let error = session
        .query(&Query::new("SELECT pg_sleep(3600)"))
        .await
        .unwrap_err();
    assert_eq!(
        (error.sqlstate(), error.class()),
        (Some("57014"), Class::Transient)
    );

    let holder = database.admin().await;
    holder.batch_execute("BEGIN; LOCK TABLE public.t").await.unwrap();
    let batch = Batch::new(vec![Statement::new("ALTER TABLE public.t ADD y int")]);
    let error = session.apply(&batch).await.unwrap_err();
    assert_eq!(
        (error.sqlstate(), error.class()),
        (Some("55P03"), Class::Transient)
    );
    assert_eq!(
        error.kind(),
        Kind::Server,
        "a table's lock is not the database's lock"
    );
    assert!(session.is_reusable());
}

/// What our sessions currently run in this database.
async fn running(database: &Database<'_>) -> String {
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'stanchion' \
               AND datname = current_database() AND state <> 'idle'";
    database.scalar(sql).await.unwrap()
}

async fn sessions(database: &Database<'_>) -> String {
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'stanchion' \
               AND datname = current_database()";
    database.scalar(sql).await.unwrap()
}

#[tokio::test]
async fn what_is_abandoned_is_cancelled() {
    let database = Database::of(Version::V15).await;
    let session = session(&database).await;
    let query = Query::new("SELECT pg_sleep(3600)");
    tokio::select! {
        result = session.query(&query) => panic!("{result:?}"),
        () = wait::eventually(WAIT_TIMEOUT, "the query", || async { running(&database).await == "1" }) => {}
    }
    assert!(!session.is_reusable());
    drop(session);
    wait::eventually(WAIT_TIMEOUT, "the query's end", || async {
        running(&database).await == "0"
    })
    .await;
    wait::eventually(WAIT_TIMEOUT, "the session's end", || async {
        sessions(&database).await == "0"
    })
    .await;
}

#[tokio::test]
async fn a_dropped_session_says_goodbye() {
    let database = Database::of(Version::V15).await;
    let (one, two) = (session(&database).await, session(&database).await);
    assert_eq!(sessions(&database).await, "2");
    drop(one);
    two.close().await;
    wait::eventually(WAIT_TIMEOUT, "the sessions' end", || async {
        sessions(&database).await == "0"
    })
    .await;
    let lost = database
        .log()
        .into_iter()
        .filter(|entry| entry.message.contains("unexpected EOF"))
        .count();
    assert_eq!(lost, 0, "the session was closed");
}

#[tokio::test]
async fn a_silent_network_is_noticed() {
    let database = Database::of(Version::V15).await;
    let proxy = Proxy::postgres(database.server().address()).await;
    let target = target(&through(&database, &proxy));
    let timeouts = Timeouts {
        statement: Duration::from_millis(200),
        ..Timeouts::default()
    };
    let connect = || Session::connect(&target, &timeouts, Arc::new(()));
    let (reader, mut writer) = (connect().await.unwrap(), connect().await.unwrap());
    proxy.hold();
    let error = reader.query(&Query::new("SELECT 1")).await.unwrap_err();
    assert_eq!((error.kind(), error.class()), (Kind::TimedOut, Class::Transient));
    let batch = Batch::new(vec![Statement::new("CREATE TABLE public.t (x int)")]);
    let error = writer.apply(&batch).await.unwrap_err();
    assert_eq!(error.kind(), Kind::CommitUnknown);
    assert!(!reader.is_reusable() && !writer.is_reusable());
    proxy.restore().await;
}

#[tokio::test]
async fn a_broken_network_is_noticed() {
    let database = Database::of(Version::V15).await;
    let proxy = Proxy::postgres(database.server().address()).await;
    let target = target(&through(&database, &proxy));
    let session = connect(&target).await.unwrap();
    proxy.cut(Cut::Refuse).await;
    let error = session.query(&Query::new("SELECT 1")).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.class()),
        (Kind::Unreachable, Class::Transient)
    );
    assert!(!session.is_reusable());
    assert_eq!(connect(&target).await.unwrap_err().kind(), Kind::Refused);
    proxy.restore().await;
    connect(&target).await.unwrap();
}

#[tokio::test]
async fn a_restarting_server_is_transient() {
    let server = Postgres::start(Version::V15).await;
    let target = target(&server.url("postgres"));
    let session = connect(&target).await.unwrap();
    server.stop().await;
    let error = session.query(&Query::new("SELECT 1")).await.unwrap_err();
    assert_eq!(error.class(), Class::Transient);
    server.resume().await;
    connect(&target).await.unwrap();
}

#[tokio::test]
async fn functions_of_others_are_not_called() {
    let database = Database::of(Version::V15).await;
    database
        .execute("CREATE FUNCTION public.lower(text) RETURNS text LANGUAGE sql AS $$ SELECT 'hijacked' $$")
        .await;
    let session = session(&database).await;
    let rows = session
        .query(&Query::new("SELECT lower('X'::text)"))
        .await
        .unwrap();
    assert_eq!(rows[0].get::<_, String>(0), "x");
}
