//! Transactions are all or nothing, and report the failed statement.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use stanchion_postgres::lock::ROLES;
use stanchion_postgres::{Batch, Begin, Class, Doing, Isolation, Kind, Query, Session, Statement, Timeouts};
use stanchion_testkit::postgres::{Database, Version};
use stanchion_testkit::proxy::{Point, Proxy, Stop};

use crate::support::{Counter, connect, session, target, through};

fn insert(value: i64) -> Statement {
    Statement::new("INSERT INTO public.t VALUES (")
        .number(value)
        .sql(")")
}

async fn with_table() -> Database<'static> {
    let database = Database::of(Version::V15).await;
    database
        .execute("CREATE TABLE public.t (x int UNIQUE DEFERRABLE INITIALLY IMMEDIATE)")
        .await;
    database
}

async fn count(database: &Database<'_>) -> String {
    database.scalar("SELECT count(*) FROM public.t").await.unwrap()
}

#[tokio::test]
async fn a_batch_is_one_round_trip() {
    let database = with_table().await;
    let proxy = Proxy::postgres(database.server().address()).await;
    let url = through(&database, &proxy);
    let counter = Arc::new(Counter::default());
    let mut session = Session::connect(&target(&url), &Timeouts::default(), counter.clone())
        .await
        .unwrap();
    proxy.forget();
    counter.statements.store(0, Ordering::Relaxed);
    counter.round_trips.store(0, Ordering::Relaxed);

    let statements: Vec<_> = (0..100).map(insert).collect();
    let affected = session
        .apply(&Batch::new(statements).locked(ROLES))
        .await
        .unwrap();

    assert_eq!(affected, vec![1; 100]);
    assert_eq!(count(&database).await, "100");
    assert_eq!(proxy.seen().round_trips, 1);
    assert_eq!(counter.round_trips.load(Ordering::Relaxed), 1);
    // BEGIN, the lock between two settings of its limit, and COMMIT.
    assert_eq!(counter.statements.load(Ordering::Relaxed), 105);
}

#[tokio::test]
async fn the_failing_statement_is_known_and_nothing_is_done() {
    let database = with_table().await;
    let mut session = session(&database).await;
    for failing in [0, 1, 7, 9] {
        let statements: Vec<_> = (0..10)
            .map(|index| {
                if index == failing {
                    Statement::new("INSERT INTO public.t VALUES (1/0)")
                } else {
                    insert(index)
                }
            })
            .collect();
        let error = session.apply(&Batch::new(statements)).await.unwrap_err();
        let statement = error.statement().unwrap();
        assert_eq!(
            (statement.index, statement.of),
            (usize::try_from(failing).unwrap(), 10)
        );
        assert_eq!(statement.text, "INSERT INTO public.t VALUES (1/0)");
        assert_eq!(error.sqlstate(), Some("22012"));
        assert_eq!(error.class(), Class::Permanent);
        assert_eq!(count(&database).await, "0");
        assert!(session.is_reusable());
    }
    // The session has left the failed transaction.
    session.apply(&Batch::new(vec![insert(1)])).await.unwrap();
    assert_eq!(count(&database).await, "1");
}

#[tokio::test]
async fn a_failing_begin_runs_nothing_after_it() {
    let database = with_table().await;
    let mut session = session(&database).await;
    // In a transaction already, so that the isolation level cannot be set any more: BEGIN itself fails.
    session.client().batch_execute("BEGIN; SELECT 1").await.unwrap();
    let batch = Batch {
        begin: Begin {
            isolation: Isolation::RepeatableRead,
            ..Begin::default()
        },
        statements: vec![insert(1)],
    };
    session.apply(&batch).await.unwrap_err();
    assert_eq!(count(&database).await, "0");
}

#[tokio::test]
async fn an_error_of_commit_is_the_commits() {
    let database = with_table().await;
    let mut session = session(&database).await;
    let statements = vec![
        Statement::new("SET CONSTRAINTS ALL DEFERRED"),
        insert(1),
        insert(1),
    ];
    let error = session.apply(&Batch::new(statements)).await.unwrap_err();
    assert_eq!((error.doing(), error.kind()), (Doing::Committing, Kind::Server));
    assert!(error.statement().is_none());
    assert_eq!(count(&database).await, "0");
    assert!(session.is_reusable());
}

#[tokio::test]
async fn a_lost_answer_to_commit_is_its_own_error() {
    let database = with_table().await;
    let proxy = Proxy::postgres(database.server().address()).await;
    let url = through(&database, &proxy);
    for (point, done) in [(Point::After, "1"), (Point::Before, "1")] {
        let mut session = connect(&target(&url)).await.unwrap();
        proxy.stop(
            Stop::at(1, point)
                .counting(|message| message.sql.as_ref().is_some_and(|sql| sql.contains("COMMIT"))),
        );
        let error = session.apply(&Batch::new(vec![insert(1)])).await.unwrap_err();
        assert_eq!(error.kind(), Kind::CommitUnknown, "{error}");
        assert_eq!(error.class(), Class::Transient);
        assert_eq!(count(&database).await, done);
        assert!(!session.is_reusable());
    }
    // Not even sent: then the result is certain.
    let mut session = connect(&target(&url)).await.unwrap();
    proxy.cut(stanchion_testkit::proxy::Cut::Close).await;
    while !session.client().is_closed() {
        tokio::task::yield_now().await;
    }
    let error = session.apply(&Batch::new(vec![insert(2)])).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Unreachable);
}

#[tokio::test]
async fn reading_and_writing_in_one_transaction() {
    let database = with_table().await;
    let mut session = session(&database).await;
    let begin = Begin {
        isolation: Isolation::RepeatableRead,
        lock: Some(ROLES),
        ..Begin::default()
    };
    let queries = [
        Query::new("SELECT count(*) FROM public.t"),
        Query::new("SELECT $1::text").text("it's"),
    ];
    let (mut transaction, rows) = session.begin(&begin, &queries).await.unwrap();
    assert_eq!(rows[0][0].get::<_, i64>(0), 0);
    assert_eq!(rows[1][0].get::<_, String>(0), "it's");
    transaction.apply(&[insert(1)]).await.unwrap();
    let rows = transaction.read(&queries).await.unwrap();
    assert_eq!(rows[0][0].get::<_, i64>(0), 1);
    assert_eq!(count(&database).await, "0", "not yet");
    transaction.commit(&[insert(2)]).await.unwrap();
    assert_eq!(count(&database).await, "2");

    // After a drop, nothing has happened.
    let (mut transaction, _) = session.begin(&Begin::default(), &[]).await.unwrap();
    transaction.apply(&[insert(3)]).await.unwrap();
    drop(transaction);
    assert!(session.is_reusable());
    let rows = session.query(&queries[0]).await.unwrap();
    assert_eq!(rows[0].get::<_, i64>(0), 2);
}

/// The effects are visible in the same round trip; a failure is attributed, and leaves a usable session.
#[tokio::test]
async fn writing_and_reading_in_one_round_trip() {
    let database = with_table().await;
    let proxy = Proxy::postgres(database.server().address()).await;
    let url = through(&database, &proxy);
    let mut session = connect(&target(&url)).await.unwrap();
    let queries = [Query::new("SELECT count(*) FROM public.t")];
    let (mut transaction, _) = session.begin(&Begin::default(), &[]).await.unwrap();
    proxy.forget();
    let rows = transaction
        .apply_and_read(&[insert(1), insert(2)], &queries)
        .await
        .unwrap();
    assert_eq!(rows[0][0].get::<_, i64>(0), 2);
    assert_eq!(proxy.seen().round_trips, 1);
    transaction.commit(&[]).await.unwrap();

    let (mut transaction, _) = session.begin(&Begin::default(), &[]).await.unwrap();
    let wrong = [insert(3), Statement::new("INSERT INTO public.nowhere VALUES (1)")];
    let error = transaction.apply_and_read(&wrong, &queries).await.unwrap_err();
    assert_eq!(error.sqlstate(), Some("42P01"));
    drop(transaction);
    assert!(session.is_reusable());
    let rows = session.query(&queries[0]).await.unwrap();
    assert_eq!(rows[0].get::<_, i64>(0), 2);
}

#[tokio::test]
async fn a_snapshot_is_one_moment_and_one_round_trip() {
    let database = with_table().await;
    let proxy = Proxy::postgres(database.server().address()).await;
    let url = through(&database, &proxy);
    let session = connect(&target(&url)).await.unwrap();
    proxy.forget();
    let queries: Vec<_> = (0..40)
        .map(|_| Query::new("SELECT pg_current_snapshot()::text, current_setting('transaction_read_only')"))
        .collect();
    let results = session.snapshot(&queries).await.unwrap();
    let moments: std::collections::BTreeSet<String> = results.iter().map(|rows| rows[0].get(0)).collect();
    assert_eq!((results.len(), moments.len()), (40, 1));
    assert_eq!(results[0][0].get::<_, &str>(1), "on");
    assert_eq!(proxy.seen().round_trips, 1);

    let bad = [
        Query::new("SELECT 1"),
        Query::new("SELECT nonsense"),
        Query::new("SELECT 2"),
    ];
    let error = session.snapshot(&bad).await.unwrap_err();
    assert_eq!(
        (error.sqlstate(), error.statement().unwrap().index),
        (Some("42703"), 1)
    );
    assert!(session.is_reusable());
    assert_eq!(session.snapshot(&queries).await.unwrap().len(), 40);
}

#[tokio::test]
async fn what_cannot_be_in_a_transaction_is_run_alone() {
    let database = with_table().await;
    let mut session = session(&database).await;
    let name = stanchion_testkit::unique::name("alone");
    let create = Statement::new("CREATE DATABASE ").ident(&name);
    let error = session
        .apply(&Batch::new(vec![create.clone()]))
        .await
        .unwrap_err();
    assert_eq!(error.sqlstate(), Some("25001"));
    session.execute(&create).await.unwrap();
    let error = session.execute(&create).await.unwrap_err();
    assert_eq!(
        (error.sqlstate(), error.class()),
        (Some("42P04"), Class::Transient)
    );
    session
        .execute(&Statement::new("DROP DATABASE ").ident(&name))
        .await
        .unwrap();
}

#[tokio::test]
async fn many_writers_under_the_lock_lose_nothing() {
    let database = Database::of(Version::V15).await;
    let roles: Vec<_> = (0..20).map(|_| stanchion_testkit::unique::name("many")).collect();
    for role in &roles {
        database.execute(&format!("CREATE ROLE {role}")).await;
    }
    let target = target(&database.url());
    let grants = roles.iter().map(|role| {
        let batch = Batch::new(vec![
            Statement::new("GRANT CREATE ON DATABASE ")
                .ident(database.name())
                .sql(" TO ")
                .ident(role),
        ]);
        let (batch, target) = (batch.locked(ROLES), target.clone());
        tokio::spawn(async move {
            let mut session = connect(&target).await.unwrap();
            session.apply(&batch).await
        })
    });
    for result in futures::future::join_all(grants).await {
        result.unwrap().unwrap();
    }
    let granted = database
        .scalar(
            "SELECT count(*) FROM pg_database d, aclexplode(d.datacl) a WHERE datname = current_database() \
                 AND privilege_type = 'CREATE' AND grantee <> d.datdba",
        )
        .await;
    assert_eq!(granted.as_deref(), Some("20"));
}

/// Every login can take the lock: it only orders the sessions that take it, and blocks none.
#[tokio::test]
async fn a_lock_that_somebody_keeps_is_done_without() {
    let database = with_table().await;
    let stranger = database.admin().await;
    stranger
        .batch_execute(&format!("SELECT pg_advisory_lock({ROLES})"))
        .await
        .unwrap();
    let mut session = session(&database).await;
    for isolation in [Isolation::ReadCommitted, Isolation::RepeatableRead] {
        let begin = Begin {
            isolation,
            lock: Some(ROLES),
            ..Begin::default()
        };
        let batch = Batch {
            begin,
            statements: vec![insert(1)],
        };
        session.apply(&batch).await.unwrap();
        let (transaction, rows) = session
            .begin(&begin, &[Query::new("SELECT count(*) FROM public.t")])
            .await
            .unwrap();
        assert_eq!(rows[0][0].get::<_, i64>(0), 1);
        transaction
            .commit(&[Statement::new("DELETE FROM public.t")])
            .await
            .unwrap();
        assert!(session.is_reusable());
    }
    let held = database
        .scalar("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())")
        .await;
    assert_eq!(held.as_deref(), Some("1"), "the stranger's");
}
