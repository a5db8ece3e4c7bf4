//! A session that can only read: the server refuses its writes, and this costs no statement.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use stanchion_postgres::{Batch, Begin, Error, PoolSettings, Pools, Query, Statement};
use stanchion_testkit::postgres::{Database, Version, versions};
use stanchion_testkit::unique;

use crate::support::{Counter, session, target};

/// Statements that write, openly or in a function, and a function that tries to leave the read-only transaction first.
const WRITES: &[&str] = &[
    "UPDATE public.t SET x = 2",
    "INSERT INTO public.t VALUES (2) RETURNING x",
    "CREATE ROLE stanchion_read_only_test",
    "GRANT CREATE ON SCHEMA public TO PUBLIC",
    "SELECT public.hidden_update()",
    "SELECT public.hidden_role()",
    "SELECT public.escape()",
    "WITH w AS (UPDATE public.t SET x = 2 RETURNING x) SELECT * FROM w",
    "SELECT x FROM public.t FOR UPDATE",
];

const FUNCTIONS: &str = "\
CREATE FUNCTION public.hidden_update() RETURNS void LANGUAGE plpgsql AS $$ BEGIN UPDATE public.t SET x = 2; END $$;
CREATE FUNCTION public.hidden_role() RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS \
    $$ BEGIN CREATE ROLE stanchion_read_only_test; END $$;
CREATE FUNCTION public.escape() RETURNS void LANGUAGE plpgsql AS \
    $$ BEGIN SET transaction_read_only = off; UPDATE public.t SET x = 2; END $$;";

async fn with_table(version: Version) -> Database<'static> {
    let database = Database::of(version).await;
    database
        .execute("CREATE TABLE public.t (x int); INSERT INTO public.t VALUES (1)")
        .await;
    database.execute(FUNCTIONS).await;
    database
}

fn pool_of_one(counter: &Arc<Counter>) -> Pools {
    let settings = PoolSettings {
        max_per_server: 1,
        ..PoolSettings::default()
    };
    Pools::new(settings, counter.clone())
}

fn assert_refused(outcome: Result<(), Error>, write: &str) {
    let refused = outcome.expect_err(write);
    // To leave a read-only transaction has an error code of its own.
    let code = if write.contains("escape") {
        "25001"
    } else {
        "25006"
    };
    assert_eq!(refused.sqlstate(), Some(code), "{write}: {refused}");
}

async fn assert_untouched(database: &Database<'_>) {
    let x = database.scalar("SELECT x FROM public.t").await;
    assert_eq!(x.as_deref(), Some("1"));
    let roles = "SELECT count(*) FROM pg_roles WHERE rolname = 'stanchion_read_only_test'";
    assert_eq!(database.scalar(roles).await.as_deref(), Some("0"));
}

#[tokio::test]
async fn the_server_refuses_a_write() {
    for version in versions() {
        let database = with_table(version).await;
        let pools = pool_of_one(&Arc::default());
        let mut session = pools.read_only(&target(&database.url())).await.unwrap();
        for write in WRITES {
            let query = [Query::new(write)];
            assert_refused(session.query(&query[0]).await.map(drop), write);
            assert_refused(session.snapshot(&query).await.map(drop), write);
            let transaction = session.begin_reading(&[], &mut |_, _| {}).await.unwrap();
            assert_refused(transaction.read(&query).await.map(drop), write);
            transaction.roll_back().await;
        }
        assert!(session.is_reusable());
        assert_untouched(&database).await;
    }
}

/// A server that is read-only itself when the session begins, as a replica, and is not afterwards.
#[tokio::test]
async fn a_promoted_server_refuses_it_too() {
    let database = with_table(Version::V15).await;
    let set = |value: &str| {
        let name = database.name();
        format!("ALTER DATABASE {name} SET default_transaction_read_only = {value}")
    };
    database.execute(&set("on")).await;
    let mut session = session(&database).await;
    session
        .client()
        .batch_execute("SET default_transaction_read_only = off")
        .await
        .unwrap();
    for write in WRITES {
        assert_refused(session.query(&Query::new(write)).await.map(drop), write);
    }
    // What says that it writes does.
    let update = Statement::new("UPDATE public.t SET x = 1");
    session.apply(&Batch::new(vec![update])).await.unwrap();
}

#[tokio::test]
async fn a_server_that_only_reads_is_not_overruled() {
    let database = with_table(Version::V15).await;
    let name = database.name();
    database
        .execute(&format!(
            "ALTER DATABASE {name} SET default_transaction_read_only = on"
        ))
        .await;
    let mut session = session(&database).await;
    let update = Statement::new("UPDATE public.t SET x = 2");
    let refused = session
        .apply(&Batch::new(vec![update.clone()]))
        .await
        .unwrap_err();
    assert_eq!(refused.sqlstate(), Some("25006"));
    let refused = session.execute(&update).await.unwrap_err();
    assert_eq!(refused.sqlstate(), Some("25006"));
}

#[tokio::test]
async fn reading_costs_no_statement_more() {
    let database = with_table(Version::V15).await;
    let counter = Arc::new(Counter::default());
    let pools = pool_of_one(&counter);
    let session = pools.read_only(&target(&database.url())).await.unwrap();
    let one = || Query::new("SELECT 1");
    let since_last = || {
        let trips = counter.round_trips.swap(0, Ordering::Relaxed);
        (trips, counter.statements.swap(0, Ordering::Relaxed))
    };
    since_last();
    session.query(&one()).await.unwrap();
    assert_eq!(since_last(), (1, 1));
    session.snapshot(&[one(), one()]).await.unwrap();
    // With BEGIN and COMMIT.
    assert_eq!(since_last(), (1, 4));
}

/// One connection serves both, in turn.
#[tokio::test]
async fn the_connection_still_writes_for_others() {
    for version in versions() {
        let database = with_table(version).await;
        let pools = pool_of_one(&Arc::default());
        let target = target(&database.url());
        let update = |x: i64| Statement::new("UPDATE public.t SET x = ").number(x);
        let reads_only = async || {
            let session = pools.read_only(&target).await.unwrap();
            let refused = session.query(&Query::new(WRITES[0])).await;
            assert_refused(refused.map(drop), WRITES[0]);
        };
        reads_only().await;
        {
            let mut session = pools.get(&target).await.unwrap();
            session.apply(&Batch::new(vec![update(2)])).await.unwrap();
            let (transaction, _) = session.begin(&Begin::default(), &[]).await.unwrap();
            transaction.commit(&[update(3)]).await.unwrap();
        }
        reads_only().await;
        let created = unique::name("made");
        {
            let mut session = pools.get(&target).await.unwrap();
            let create = Statement::new("CREATE DATABASE ").ident(&created);
            session.execute(&create).await.unwrap();
            // After a failure, too, the next one only reads.
            session.execute(&create).await.unwrap_err();
            assert!(session.is_reusable());
        }
        reads_only().await;
        {
            let mut session = pools.get(&target).await.unwrap();
            let affected = session.execute(&update(1)).await.unwrap();
            assert_eq!(affected, 1);
            let drop = Statement::new("DROP DATABASE ").ident(&created);
            session.execute(&drop).await.unwrap();
        }
        reads_only().await;
        assert_untouched(&database).await;
    }
}
