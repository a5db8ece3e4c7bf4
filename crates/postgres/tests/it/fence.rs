//! A replica that lost the Lease changes nothing, at any point of its work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use stanchion_postgres::{Batch, Begin, Fence, Kind, Query, Statement};
use stanchion_testkit::postgres::{Database, Postgres, Version, versions};
use stanchion_testkit::proxy::{Cut, Proxy};
use stanchion_testkit::wait;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use crate::support::{WAIT_TIMEOUT, connect, session, target, through};

fn insert(value: i64) -> Statement {
    Statement::new("INSERT INTO public.t VALUES (")
        .number(value)
        .sql(")")
}

#[tokio::test]
async fn a_lost_leader_sends_no_statement_and_no_commit() {
    let database = Database::of(Version::V15).await;
    database.execute("CREATE TABLE public.t (x int)").await;
    let (mut work, mut other) = (session(&database).await, session(&database).await);
    let leads = Arc::new(AtomicBool::new(true));
    let asked = Arc::clone(&leads);
    let fence = Fence::new(move || asked.load(Ordering::SeqCst));
    let within = async {
        work.apply(&Batch::new(vec![insert(1)])).await.unwrap();
        let (mut transaction, _) = work.begin(&Begin::default(), &[]).await.unwrap();
        transaction.apply(&[insert(2)]).await.unwrap();

        // The Lease is lost during a transaction: neither more statements nor its COMMIT are sent.
        leads.store(false, Ordering::SeqCst);
        let refused = transaction.commit(&[]).await.unwrap_err();
        assert_eq!(refused.kind(), Kind::NotLeading, "{refused}");
        let refused = other.apply(&Batch::new(vec![insert(3)])).await.unwrap_err();
        assert_eq!(refused.kind(), Kind::NotLeading, "{refused}");
        let alone = Statement::new("CREATE TABLE public.u (x int)");
        let refused = other.execute(&alone).await.unwrap_err();
        assert_eq!(refused.kind(), Kind::NotLeading, "{refused}");
        // Reads are still allowed, and the sessions are not in a transaction any more.
        for session in [&mut work, &mut other] {
            let rows = session
                .snapshot(&[Query::new("SELECT count(*) FROM public.t")])
                .await;
            assert_eq!(rows.unwrap()[0][0].get::<_, i64>(0), 1);
        }

        leads.store(true, Ordering::SeqCst);
        work.apply(&Batch::new(vec![insert(4)])).await.unwrap();
    };
    fence.around(within).await;
    assert_eq!(
        database.scalar("SELECT sum(x) FROM public.t").await.as_deref(),
        Some("5")
    );
    let made = database
        .scalar("SELECT count(*) FROM pg_class WHERE relname = 'u'")
        .await;
    assert_eq!(made.as_deref(), Some("0"));
}

/// What a stopped task was doing must not commit after another replica has begun.
#[tokio::test]
async fn the_cancellations_of_a_stopped_task_can_be_waited_for() {
    let database = Database::of(Version::V15).await;
    let session = session(&database).await;
    let running = async || {
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'stanchion' \
                   AND datname = current_database() AND state <> 'idle'";
        database.scalar(sql).await.unwrap()
    };
    let cancellations = TaskTracker::new();
    let fence = Fence::new(|| true).tracking(cancellations.clone());
    let work = async move { session.query(&Query::new("SELECT pg_sleep(3600)")).await.is_ok() };
    let task = tokio::spawn(fence.around(work));
    wait::eventually(WAIT_TIMEOUT, "the query", async || running().await == "1").await;
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    cancellations.close();
    assert_eq!(cancellations.len(), 1);
    timeout(WAIT_TIMEOUT, cancellations.wait()).await.unwrap();
    assert_eq!(running().await, "0");
}

/// What a killed operator was doing must not commit after the next one has begun: nobody cancels it.
#[tokio::test]
async fn the_statement_of_a_killed_client_ends() {
    for version in versions() {
        let server = Postgres::start(version).await;
        let database = server.database().await;
        let proxy = Proxy::postgres(server.address()).await;
        let session = connect(&target(&through(&database, &proxy))).await.unwrap();
        let running = async || {
            let sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'stanchion' \
                       AND datname = current_database() AND state <> 'idle'";
            database.scalar(sql).await.unwrap()
        };
        let work =
            tokio::spawn(async move { session.query(&Query::new("SELECT pg_sleep(3600)")).await.is_ok() });
        wait::eventually(WAIT_TIMEOUT, "the query", async || running().await == "1").await;
        proxy.cut(Cut::Refuse).await;
        assert!(!work.await.unwrap());
        wait::eventually(WAIT_TIMEOUT, "the end of the query", async || {
            running().await == "0"
        })
        .await;
    }
}
