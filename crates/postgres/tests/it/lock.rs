//! Advisory locks between independent sessions.

use std::time::Duration;

use stanchion_postgres::lock::{AdvisoryKey, ROLES};
use stanchion_postgres::{Batch, Begin, Isolation, Kind, Query, Statement};
use stanchion_testkit::postgres::{Database, Version};
use stanchion_testkit::wait;

use crate::support::{WAIT_TIMEOUT, session};

const SHORT: Duration = Duration::from_millis(50);

async fn waiting(database: &Database<'_>) -> String {
    let sql = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted \
               AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    database.scalar(sql).await.unwrap()
}

#[tokio::test]
async fn a_session_lock_lasts_over_transactions() {
    let database = Database::of(Version::V15).await;
    let (mut one, mut two) = (session(&database).await, session(&database).await);
    let mut lock = one.lock(ROLES, SHORT).await.unwrap();
    lock.session()
        .apply(&Batch::new(vec![Statement::new("CREATE TABLE public.t (x int)")]))
        .await
        .unwrap();
    assert_eq!(
        two.lock(ROLES, SHORT).await.err().unwrap().kind(),
        Kind::Contended
    );
    assert!(two.is_reusable(), "contention does not break a session");
    // Another purpose is another lock.
    two.lock(AdvisoryKey::named("else"), SHORT)
        .await
        .unwrap()
        .release()
        .await;
    lock.release().await;
    two.lock(ROLES, SHORT).await.unwrap().release().await;
    assert!(one.is_reusable());

    // Not released: the session is not used again, and the lock ends with it.
    drop(one.lock(ROLES, SHORT).await.unwrap());
    assert!(!one.is_reusable());
    drop(one);
    two.lock(ROLES, WAIT_TIMEOUT).await.unwrap().release().await;
}

#[tokio::test]
async fn waiters_are_served_in_order() {
    let database = Database::of(Version::V15).await;
    let mut holder = session(&database).await;
    let held = holder.lock(ROLES, WAIT_TIMEOUT).await.unwrap();
    let (sender, mut order) = tokio::sync::mpsc::unbounded_channel();
    for number in 0..5 {
        let (mut session, sender) = (session(&database).await, sender.clone());
        tokio::spawn(async move {
            let lock = session.lock(ROLES, WAIT_TIMEOUT).await.unwrap();
            sender.send(number).unwrap();
            lock.release().await;
        });
        wait::eventually(WAIT_TIMEOUT, "the waiter", || async {
            waiting(&database).await == (number + 1).to_string()
        })
        .await;
    }
    drop(sender);
    held.release().await;
    let mut served = Vec::new();
    while let Some(number) = order.recv().await {
        served.push(number);
    }
    assert_eq!(served, [0, 1, 2, 3, 4]);
}

/// A transaction's lock ends with it, also if it was transferred from the session.
#[tokio::test]
async fn a_transactions_lock_ends_with_it() {
    let database = Database::of(Version::V15).await;
    let mut session = session(&database).await;
    for isolation in [Isolation::ReadCommitted, Isolation::RepeatableRead] {
        let begin = Begin {
            isolation,
            lock: Some(ROLES),
            ..Begin::default()
        };
        let question = Query::new(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()",
        );
        let (transaction, rows) = session
            .begin(&begin, std::slice::from_ref(&question))
            .await
            .unwrap();
        assert_eq!(rows[0][0].get::<_, i64>(0), 1);
        transaction.roll_back().await;
        assert_eq!(session.query(&question).await.unwrap()[0].get::<_, i64>(0), 0);
    }
}
