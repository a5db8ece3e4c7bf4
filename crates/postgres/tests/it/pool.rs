//! The pool: its limit, its order, and what it does not keep.

mod breakers;
mod unresponsive;

use std::sync::Arc;
use std::time::Duration;

use stanchion_postgres::pool::Counts;
use stanchion_postgres::{
    Batch, Class, ConnectionConfig, Error, Kind, PoolSettings, Pooled, Pools, Query, Statement,
};
use stanchion_testkit::postgres::{ADMIN, Database, Postgres, Version};
use stanchion_testkit::proxy::Proxy;
use stanchion_testkit::{unique, wait};

use crate::support::{WAIT_TIMEOUT, target, through};

fn pools(change: impl FnOnce(&mut PoolSettings)) -> Pools {
    let mut settings = PoolSettings {
        wait: WAIT_TIMEOUT,
        ..PoolSettings::default()
    };
    change(&mut settings);
    Pools::new(settings, Arc::new(()))
}

fn counts(pools: &Pools) -> Counts {
    pools
        .counts()
        .first()
        .map(|(_, counts)| *counts)
        .unwrap_or_default()
}

async fn pid(session: &Pooled) -> i32 {
    session
        .query(&Query::new("SELECT pg_backend_pid()"))
        .await
        .unwrap()[0]
        .get(0)
}

/// Sixty tasks at once; returns the maximum number of connections of the pool.
async fn crowd(pools: &Pools, targets: &[ConnectionConfig]) -> usize {
    let work = (0..60).map(|index| {
        let (pools, target) = (pools.clone(), targets[index % targets.len()].clone());
        tokio::spawn(async move {
            let session = pools.get(&target).await?;
            let rows = session
                .query(&Query::new("SELECT current_database()::text"))
                .await?;
            assert_eq!(rows[0].get::<_, String>(0), target.database());
            Ok::<_, Error>(counts(&pools).open)
        })
    });
    let open = futures::future::join_all(work).await;
    open.into_iter()
        .map(|result| result.unwrap().unwrap())
        .max()
        .unwrap()
}

#[tokio::test]
async fn the_bound_is_the_servers_across_databases() {
    let server = Postgres::start(Version::V15).await;
    let proxy = Proxy::postgres(server.address()).await;
    let mut targets = Vec::new();
    for _ in 0..5 {
        targets.push(target(&through(&server.database().await, &proxy)));
    }
    let pools = pools(|_| {});
    proxy.forget();
    assert_eq!(crowd(&pools, &targets[..1]).await, 4);
    assert_eq!(proxy.seen().most_open, 4);
    assert_eq!(crowd(&pools, &targets).await, 4);
    assert_eq!(pools.counts().len(), 1);
    wait::eventually(WAIT_TIMEOUT, "four connections", || async {
        proxy.seen().open == 4
    })
    .await;
    pools.close_idle().await;
    assert_eq!(
        counts(&pools),
        Counts {
            limit: 4,
            ..Counts::default()
        }
    );
    wait::eventually(WAIT_TIMEOUT, "no connection", || async { proxy.seen().open == 0 }).await;
}

/// A database that refuses connections, or has no room, is left alone, and the others of the account are not.
#[tokio::test]
async fn a_closed_database_closes_no_other() {
    let server = Postgres::start(Version::V15).await;
    let (open, closed) = (server.database().await, server.database().await);
    // The owner of two databases must not be able to close the account for everybody.
    let full = [server.database().await, server.database().await];
    let role = "CREATE ROLE plain LOGIN PASSWORD 'p'";
    server.execute("postgres", role).await;
    for (database, how) in [
        (&closed, "ALLOW_CONNECTIONS false"),
        (&full[0], "CONNECTION LIMIT 0"),
        (&full[1], "CONNECTION LIMIT 0"),
    ] {
        let close = format!("ALTER DATABASE \"{}\" {how}", database.name());
        server.execute("postgres", &close).await;
    }
    let pools = pools(|_| {});
    let of = |database: &Database<'_>| target(&database.url_of("plain", "p"));
    for _ in 0..3 {
        let error = pools.get(&of(&closed)).await.err().unwrap();
        assert_eq!(
            (error.class(), error.is_closed_database()),
            (Class::Human, true),
            "{error}"
        );
        for full in &full {
            let error = pools.get(&of(full)).await.err().unwrap();
            assert_eq!(
                (error.class(), error.sqlstate()),
                (Class::Transient, Some("53300")),
                "{error}"
            );
        }
        drop(pools.get(&of(&open)).await.unwrap());
        pools.close_idle().await;
    }
    let error = pools.get(&of(&full[0])).await.err().unwrap();
    assert!(
        error.was_not_tried(),
        "the full database is left alone for a while"
    );
    assert!(!counts(&pools).broken);
}

#[tokio::test]
async fn who_comes_first_is_served_first() {
    let database = Database::of(Version::V15).await;
    let target = target(&database.url());
    let pools = pools(|settings| settings.max_per_server = 1);
    let first = pools.get(&target).await.unwrap();
    let (sender, mut order) = tokio::sync::mpsc::unbounded_channel();
    let all = pools.clone();
    for number in 0..8_usize {
        let (pools, target, sender) = (pools.clone(), target.clone(), sender.clone());
        tokio::spawn(async move {
            let session = pools.get(&target).await.unwrap();
            sender.send((number, pid(&session).await)).unwrap();
        });
        wait::eventually(WAIT_TIMEOUT, "a waiter", || async {
            counts(&all).waiting == number + 1
        })
        .await;
    }
    drop((first, sender));
    let mut served = Vec::new();
    while let Some(one) = order.recv().await {
        served.push(one);
    }
    let numbers: Vec<_> = served.iter().map(|one| one.0).collect();
    assert_eq!(numbers, (0..8).collect::<Vec<_>>());
    assert!(
        served.windows(2).all(|pair| pair[0].1 == pair[1].1),
        "one connection served all"
    );
}

#[tokio::test]
async fn waiting_has_an_end() {
    let database = Database::of(Version::V15).await;
    let target = target(&database.url());
    let pools = pools(|settings| {
        settings.max_per_server = 1;
        settings.wait = Duration::from_millis(20);
    });
    let held = pools.get(&target).await.unwrap();
    let error = pools.get(&target).await.err().unwrap();
    assert_eq!(error.kind(), Kind::Exhausted);
    drop(held);
    pools.get(&target).await.unwrap();
}

#[tokio::test]
async fn limits_can_change() {
    let database = Database::of(Version::V15).await;
    let target = target(&database.url());
    let pools = pools(|settings| {
        settings.max_per_server = 1;
        settings.wait = Duration::from_millis(200);
    });
    let one = pools.get(&target).await.unwrap();
    pools.limit(&target, 2);
    let two = pools.get(&target).await.unwrap();
    assert_eq!(
        counts(&pools),
        Counts {
            open: 2,
            idle: 0,
            waiting: 0,
            limit: 2,
            broken: false,
        }
    );
    pools.limit(&target, 1);
    drop(one);
    assert!(
        pools
            .get(&target)
            .await
            .is_err_and(|error| error.kind() == Kind::Exhausted)
    );
    drop(two);
    pools.get(&target).await.unwrap();
    assert_eq!(counts(&pools).open, 1);
}

#[tokio::test]
async fn what_is_broken_or_abandoned_is_not_kept() {
    let database = Database::of(Version::V15).await;
    let target = target(&database.url());
    let pools = pools(|_| {});
    let session = pools.get(&target).await.unwrap();
    let first = pid(&session).await;
    drop(session);
    let session = pools.get(&target).await.unwrap();
    assert_eq!(pid(&session).await, first, "kept");
    database
        .execute(&format!("SELECT pg_terminate_backend({first})"))
        .await;
    wait::eventually(WAIT_TIMEOUT, "the end", || async { !session.is_reusable() }).await;
    drop(session);
    assert_eq!(counts(&pools).open, 0);

    // Terminated while it was idle.
    let second = pid(&pools.get(&target).await.unwrap()).await;
    database
        .execute(&format!("SELECT pg_terminate_backend({second}, 30000)"))
        .await;
    let third = wait::eventually(WAIT_TIMEOUT, "a new one", || async {
        let session = pools.get(&target).await.ok()?;
        let rows = session.query(&Query::new("SELECT pg_backend_pid()")).await.ok()?;
        Some(rows[0].get::<_, i32>(0))
    })
    .await;
    assert_ne!(third, second);

    // Cancelled during a statement.
    let session = pools.get(&target).await.unwrap();
    let query = Query::new("SELECT pg_sleep(3600)");
    assert!(futures::FutureExt::now_or_never(session.query(&query)).is_none());
    drop(session);
    assert_eq!(counts(&pools).open, 0);
}

#[tokio::test]
async fn the_unused_are_closed_after_a_while() {
    let database = Database::of(Version::V15).await;
    let target = target(&database.url());
    let pools = pools(|settings| settings.idle = Duration::from_millis(20));
    drop((
        pools.get(&target).await.unwrap(),
        pools.get(&target).await.unwrap(),
    ));
    wait::eventually(WAIT_TIMEOUT, "the end of both", || async {
        counts(&pools).open == 0
    })
    .await;
    // And again: the closing task is still there.
    drop(pools.get(&target).await.unwrap());
    wait::eventually(WAIT_TIMEOUT, "the end of the third", || async {
        counts(&pools).open == 0
    })
    .await;
}

#[tokio::test]
async fn changed_credentials_replace_connections() {
    let database = Database::of(Version::V15).await;
    let role = unique::name("rotated");
    database
        .execute(&format!("CREATE ROLE {role} LOGIN PASSWORD 'old'"))
        .await;
    let (old, new) = (
        target(&database.url_of(&role, "old")),
        target(&database.url_of(&role, "new")),
    );
    let pools = pools(|_| {});
    let before = pid(&pools.get(&old).await.unwrap()).await;
    assert_eq!(
        pools.get(&new).await.err().unwrap().sqlstate(),
        Some("28P01"),
        "not served by the old one"
    );
    assert_eq!(
        counts(&pools).open,
        1,
        "a failed one is not counted, and takes nothing from the others"
    );
    database
        .execute(&format!("ALTER ROLE {role} PASSWORD 'new'"))
        .await;
    let after = pid(&pools.get(&new).await.unwrap()).await;
    assert_ne!(before, after);
    assert_eq!(counts(&pools).open, 1);
    assert!(pools.get(&old).await.is_err());
}

#[tokio::test]
async fn one_writer_a_database_whatever_the_road() {
    let database = Database::of(Version::V15).await;
    database
        .execute("CREATE TABLE public.t (x int); INSERT INTO public.t VALUES (0)")
        .await;
    let by_address = target(&database.url());
    let by_name = target(&database.url().replace("127.0.0.1", "localhost"));
    let pools = pools(|_| {});
    assert_eq!(
        pools.identity(&by_address).await.unwrap(),
        pools.identity(&by_name).await.unwrap()
    );
    let read_and_write = |target: ConnectionConfig| {
        let pools = pools.clone();
        tokio::spawn(async move {
            let (_turn, mut session) = pools.exclusive(&target, WAIT_TIMEOUT).await.unwrap();
            let rows = session
                .query(&Query::new("SELECT x FROM public.t"))
                .await
                .unwrap();
            let next = i64::from(rows[0].get::<_, i32>(0)) + 1;
            let update = Statement::new("UPDATE public.t SET x = ").number(next);
            session.apply(&Batch::new(vec![update])).await.unwrap();
        })
    };
    let tasks = (0..40).map(|index| {
        read_and_write(if index % 2 == 0 {
            by_name.clone()
        } else {
            by_address.clone()
        })
    });
    for task in futures::future::join_all(tasks).await {
        task.unwrap();
    }
    assert_eq!(
        database.scalar("SELECT x FROM public.t").await.as_deref(),
        Some("40"),
        "no update was lost"
    );
}

/// An object that names the same server and cannot log in does not change the limits of others.
#[tokio::test]
async fn a_stranger_lowers_nobodys_limit() {
    let database = Database::of(Version::V15).await;
    let ours = target(&database.url());
    let pools = pools(|settings| settings.wait = Duration::from_millis(200));
    pools.limit(&ours, 3);
    let strangers = target(&database.url_of(ADMIN, "guessed"));
    pools.limit(&strangers, 1);
    assert_eq!(
        pools.get(&strangers).await.err().unwrap().sqlstate(),
        Some("28P01")
    );
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(pools.get(&ours).await.unwrap());
    }
    assert!(pools.get(&ours).await.is_err(), "the limit is still there");
}
