//! Servers that never answer, stop answering, or are gone.

use std::time::{Duration, Instant};

use futures::FutureExt as _;
use stanchion_postgres::{ConnectionConfig, Kind, Query};
use stanchion_testkit::postgres::{Database, Version};
use stanchion_testkit::proxy::{Cut, Proxy};
use stanchion_testkit::wait;

use super::{pid, pools};
use crate::support::{WAIT_TIMEOUT, target, through};

/// Forty objects on a server that accepts connections and never answers, and another one on the same machine.
#[tokio::test]
async fn a_server_that_never_answers_is_tried_by_one() {
    let database = Database::of(Version::V15).await;
    let healthy = target(&database.url());
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = silent.local_addr().unwrap().port();
    let hole = ConnectionConfig::new("127.0.0.1", port, "d", "u").unwrap();
    let pools = pools(|settings| settings.timeouts.connect = Duration::from_secs(3));
    let tries = futures::future::join_all((0..40).map(|_| pools.get(&hole)));
    let accepted = async {
        let mut held = Vec::new();
        loop {
            held.push(silent.accept().await.unwrap());
            assert_eq!(held.len(), 1, "one attempt at a time");
        }
    };
    let kinds: Vec<_> = tokio::select! {
        results = tries => results.into_iter().map(|result| result.err().unwrap().kind()).collect(),
        () = accepted => unreachable!(),
    };
    assert_eq!(
        kinds.iter().filter(|kind| **kind == Kind::TimedOut).count(),
        1,
        "{kinds:?}"
    );
    assert_eq!(
        kinds.iter().filter(|kind| **kind == Kind::Exhausted).count(),
        39,
        "{kinds:?}"
    );
    let again = pools.get(&hole).await.err().unwrap();
    assert!(again.was_not_tried(), "{again}");
    let broken: Vec<_> = pools
        .counts()
        .into_iter()
        .filter(|(_, counts)| counts.broken)
        .collect();
    assert_eq!(broken.len(), 1);
    assert_eq!(broken[0].0, hole.to_string());
    pools.get(&healthy).await.unwrap();
}

/// A frozen server: connections from before do not answer.
#[tokio::test]
async fn a_frozen_server_does_not_collect_those_who_wait() {
    let database = Database::of(Version::V15).await;
    let proxy = Proxy::postgres(database.server().address()).await;
    let frozen = target(&through(&database, &proxy));
    let pools = pools(|settings| {
        settings.timeouts.statement = Duration::from_secs(3);
        settings.timeouts.connect = Duration::from_secs(3);
    });
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(pools.get(&frozen).await.unwrap());
    }
    proxy.hold();
    let question = Query::new("SELECT 1");
    let asked = futures::future::join_all(held.iter().map(|session| session.query(&question)));
    let waiting = futures::future::join_all((0..20).map(|_| pools.get(&frozen)));
    let (asked, waited) = tokio::join!(asked, waiting);
    assert!(
        asked
            .iter()
            .all(|answer| answer.as_ref().err().unwrap().kind() == Kind::TimedOut)
    );
    assert!(
        waited
            .iter()
            .all(|one| one.as_ref().err().unwrap().kind() == Kind::Exhausted)
    );
    drop(held);
    assert!(pools.get(&frozen).await.err().unwrap().was_not_tried());
    proxy.restore().await;
    wait::eventually(WAIT_TIMEOUT, "the server again", || async {
        pools.get(&frozen).await.ok()
    })
    .await;
}

/// A pass on a frozen server ends at its own deadline, long before the timeout of its statement. The others must not each
/// wait for theirs.
#[tokio::test]
async fn a_task_that_gives_up_on_a_frozen_server_opens_the_circuit() {
    let database = Database::of(Version::V15).await;
    let proxy = Proxy::postgres(database.server().address()).await;
    let frozen = target(&through(&database, &proxy));
    let pools = pools(|settings| settings.timeouts.connect = Duration::from_secs(1));
    let mut losses = pools.losses();
    let (first, second) = (
        pools.get(&frozen).await.unwrap(),
        pools.get(&frozen).await.unwrap(),
    );
    let deadline = Duration::from_millis(1500);
    // A question that takes as long on a server that answers others is no sign.
    let begun = Instant::now();
    let slow = tokio::spawn(async move { first.query(&Query::new("SELECT pg_sleep(3600)")).await.is_ok() });
    wait::eventually(WAIT_TIMEOUT, "other answers", async || {
        second.query(&Query::new("SELECT 1")).await.unwrap();
        begun.elapsed() > deadline
    })
    .await;
    slow.abort();
    assert!(slow.await.unwrap_err().is_cancelled());
    assert!(!super::counts(&pools).broken);

    proxy.hold();
    let begun = Instant::now();
    let frozen_out = tokio::spawn(async move { second.query(&Query::new("SELECT 1")).await.is_ok() });
    wait::eventually(WAIT_TIMEOUT, "the deadline of the task", async || {
        begun.elapsed() > deadline
    })
    .await;
    frozen_out.abort();
    assert!(frozen_out.await.unwrap_err().is_cancelled());
    assert!(super::counts(&pools).broken);
    assert!(losses.next().now_or_never().is_some());
    assert!(pools.get(&frozen).await.err().unwrap().was_not_tried());
    proxy.restore().await;
    wait::eventually(WAIT_TIMEOUT, "the server again", || async {
        pools.get(&frozen).await.ok()
    })
    .await;
}

/// A server that ends an idle connection and is there is not lost; one that is gone is, and everybody hears of it once.
#[tokio::test]
async fn a_lost_connection_is_announced_to_everybody() {
    let database = Database::of(Version::V15).await;
    let proxy = Proxy::postgres(database.server().address()).await;
    let through = target(&through(&database, &proxy));
    let pools = pools(|_| {});
    let mut heard = [pools.losses(), pools.losses()];
    let ended = pid(&pools.get(&through).await.unwrap()).await;
    database
        .server()
        .execute("postgres", &format!("SELECT pg_terminate_backend({ended})"))
        .await;
    // The attempt that shows that the server is there.
    wait::eventually(WAIT_TIMEOUT, "another connection", async || {
        proxy.seen().attempts.len() == 2 && proxy.seen().open == 0
    })
    .await;
    for listener in &mut heard {
        assert!(listener.next().now_or_never().is_none(), "the server is there");
    }
    drop(pools.get(&through).await.unwrap());
    proxy.cut(Cut::Refuse).await;
    for listener in &mut heard {
        let server = tokio::time::timeout(WAIT_TIMEOUT, listener.next()).await.unwrap();
        assert_eq!(*server, *through.to_string());
    }
    assert!(pools.get(&through).await.is_err());
    for listener in &mut heard {
        assert!(listener.next().now_or_never().is_none(), "a server is lost once");
    }
    proxy.restore().await;
    wait::eventually(WAIT_TIMEOUT, "the server again", || async {
        pools.get(&through).await.ok()
    })
    .await;
}
