//! Advisory locks between sessions that know nothing of each other.

use std::time::Duration;

use stanchion_postgres::lock::{AdvisoryKey, ROLES};
use stanchion_postgres::{Batch, Begin, Isolation, Kind, Query, Statement};
use stanchion_testkit::postgres::{Database, Version};
use stanchion_testkit::wait;

use crate::support::{PATIENCE, session};

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

    // Not given back: the session is not used again, and the lock goes with it.
    drop(one.lock(ROLES, SHORT).await.unwrap());
    assert!(!one.is_reusable());
    drop(one);
    two.lock(ROLES, PATIENCE).await.unwrap().release().await;
}

#[tokio::test]
async fn waiters_are_served_in_order() {
    let database = Database::of(Version::V15).await;
    database
        .execute("CREATE TABLE public.t (id int GENERATED ALWAYS AS IDENTITY, who int)")
        .await;
    let mut holder = session(&database).await;
    let (held, _) = holder
        .begin(
            &Begin {
                lock: Some(ROLES),
                ..Begin::default()
            },
            &[],
        )
        .await
        .unwrap();
    let mut waiters = Vec::new();
    for number in 0..5 {
        let mut session = session(&database).await;
        let insert = Statement::new("INSERT INTO public.t (who) VALUES (")
            .number(number)
            .sql(")");
        let begin = Begin {
            lock: Some(ROLES),
            lock_wait: Some(PATIENCE),
            ..Begin::default()
        };
        waiters.push(tokio::spawn(async move {
            session
                .apply(&Batch {
                    begin,
                    statements: vec![insert],
                })
                .await
                .unwrap();
        }));
        wait::eventually(PATIENCE, "the waiter", || async {
            waiting(&database).await == (number + 1).to_string()
        })
        .await;
    }
    held.roll_back().await;
    for waiter in waiters {
        waiter.await.unwrap();
    }
    let order = database
        .scalar("SELECT string_agg(who::text, ',' ORDER BY id) FROM public.t")
        .await;
    assert_eq!(order.as_deref(), Some("0,1,2,3,4"));
}

/// The snapshot must be younger than the lock: otherwise a writer decides by what was there before its predecessor.
#[tokio::test]
async fn after_waiting_the_predecessors_work_is_seen() {
    let database = Database::of(Version::V15).await;
    database.execute("CREATE TABLE public.t (x int)").await;
    let (mut first, mut second) = (session(&database).await, session(&database).await);
    let begin = Begin {
        isolation: Isolation::RepeatableRead,
        lock: Some(ROLES),
        lock_wait: Some(PATIENCE),
        ..Begin::default()
    };
    let (held, _) = first.begin(&begin, &[]).await.unwrap();
    let waiter = tokio::spawn(async move {
        let (transaction, rows) = second
            .begin(&begin, &[Query::new("SELECT count(*) FROM public.t")])
            .await
            .unwrap();
        transaction.roll_back().await;
        rows[0][0].get::<_, i64>(0)
    });
    wait::eventually(PATIENCE, "the waiter", || async {
        waiting(&database).await == "1"
    })
    .await;
    held.commit(&[Statement::new("INSERT INTO public.t VALUES (1)")])
        .await
        .unwrap();
    assert_eq!(waiter.await.unwrap(), 1);
    wait::eventually(PATIENCE, "no lock left", || async {
        let held = "SELECT count(*) = 0 FROM pg_locks WHERE locktype = 'advisory' \
                    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        database.scalar(held).await.as_deref() == Some("t")
    })
    .await;
}
