//! The end of an operator: running passes finish, if they can do so soon, and no others begin.

use std::time::Duration;

use stanchion_kernel::driver::Settings;
use stanchion_kernel::lease::{Elector, Identity, LeaseSettings, Term, Timings};
use tokio::time::{sleep, timeout};

use super::{LONG, sized, start};
use crate::lease::store::Store;
use crate::test_env::server::Server;

#[tokio::test(start_paused = true)]
async fn what_runs_is_finished_and_nothing_else_is_begun() {
    let server = Server::default();
    let settings = Settings {
        concurrency: 1,
        ..Settings::default()
    };
    for name in ["one", "two"] {
        server.widget(name, sized(1));
        server.world.hold(name);
    }
    let mut operator = start(&server, settings);
    let held = || {
        ["one", "two"]
            .into_iter()
            .find(|name| server.world.running(name) == 1)
    };
    server.until("one", |_| held().is_some()).await;
    let (running, waiting) = match held() {
        Some("one") => ("one", "two"),
        _ => ("two", "one"),
    };
    server.shutdown.cancel();
    assert!(
        timeout(Duration::from_millis(200), &mut operator.task)
            .await
            .is_err(),
        "it waits for what runs"
    );
    server.world.release(running);
    timeout(LONG, &mut operator.task).await.unwrap().unwrap();
    assert!(server.get(running).is_ready());
    sleep(LONG).await;
    assert_eq!(server.world.passes(waiting), 0);
}

#[tokio::test(start_paused = true)]
async fn an_operator_that_is_dropped_stops_in_the_middle() {
    let server = Server::default();
    server.widget("one", sized(1));
    server.world.hold("one");
    let operator = start(&server, Settings::default());
    server.until("one", |_| server.world.running("one") == 1).await;
    drop(operator);
    server.until("one", |_| server.world.running("one") == 0).await;
    server.world.release("one");
    sleep(LONG).await;
    assert_eq!(server.world.thing("one"), None);
    assert_eq!(server.get("one").status, None);
}

/// The next leader waits for the Lease, and not for the slowest pass of this one.
#[tokio::test(start_paused = true)]
async fn a_pass_that_hangs_does_not_keep_the_lease() {
    let (server, store) = (Server::default(), Store::default());
    server.widget("one", sized(1));
    server.world.hold("one");
    let settings = LeaseSettings {
        namespace: "default".into(),
        name: "stanchion".into(),
        identity: Identity::new("a"),
        timings: Timings::default(),
    };
    let elector = Elector::new(store.link(Duration::ZERO).client(), settings);
    let operator = server.operator(Settings::default());
    let shutdown = server.shutdown.clone();
    let term = tokio::spawn(async move { elector.lead(shutdown, |_| operator.run()).await });
    server.until("one", |_| server.world.running("one") == 1).await;
    server.shutdown.cancel();
    let term = timeout(Duration::from_secs(2), term).await;
    assert_eq!(term.expect("it ends soon").unwrap(), Term::Finished(()));
    assert_eq!(store.spec().holder_identity.as_deref(), Some(""));
    assert_eq!(server.world.running("one"), 0, "the pass is dropped before");
}
