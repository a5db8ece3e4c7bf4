//! The end of an operator: running passes finish, if they can do so soon, and no others begin.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::Method;
use stanchion_kernel::apply::Takeover;
use stanchion_kernel::driver::Settings;
use stanchion_kernel::lease::{Elector, Fence, Identity, LeaseSettings, Term, Timings};
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::{LONG, sized, start};
use crate::children::controller::ManyChildren;
use crate::lease::store::{Link, Store};
use crate::test_env::WidgetController;
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

/// A leader whose cache of children is never complete ends, too.
#[tokio::test(start_paused = true)]
async fn an_operator_that_never_became_ready_ends() {
    let cluster = Server::default();
    cluster.fault(Method::GET, "/configmaps", Some(403));
    let operator = cluster.operator_of(ManyChildren(Takeover::Refuse), Fence::open());
    let readiness = operator.readiness();
    let mut task = AbortOnDropHandle::new(tokio::spawn(operator.run()));
    assert!(
        timeout(LONG, readiness.wait()).await.is_err(),
        "the children cannot be listed"
    );
    cluster.shutdown.cancel();
    timeout(LONG, &mut task).await.unwrap().unwrap();
}

fn elector(link: &Link) -> Elector {
    let settings = LeaseSettings {
        namespace: "default".into(),
        name: "stanchion".into(),
        identity: Identity::new("a"),
        timings: Timings::default(),
    };
    Elector::new(link.client(), settings)
}

/// A statement that is not cancelled may commit after the next leader has begun.
#[tokio::test(start_paused = true)]
async fn a_lost_lease_is_given_up_after_the_cancellation_of_its_statements() {
    let (server, store) = (Server::default(), Store::default());
    server.widget("one", sized(1));
    server.world.hold("one");
    let link = store.link(Duration::ZERO);
    let elector = elector(&link);
    let (cancelled, runtime) = (Arc::new(AtomicBool::new(false)), Handle::current());
    let done = Arc::clone(&cancelled);
    server.world.when_left("one", move || {
        let done = Arc::clone(&done);
        let cancellation = async move {
            sleep(Duration::from_secs(2)).await;
            done.store(true, Ordering::SeqCst);
        };
        stanchion_postgres::Fence::outlive(cancellation, &runtime);
    });
    let cluster = server.clone();
    let term = tokio::spawn(async move {
        let world = cluster.world.clone();
        let work = |leadership| {
            let fence = Fence::guarded_by(leadership);
            cluster.operator_of(WidgetController { world }, fence).run()
        };
        elector.lead(CancellationToken::new(), work).await
    });
    server.until("one", |_| server.world.running("one") == 1).await;
    link.cut(true);
    let term = timeout(LONG, term).await.unwrap().unwrap();
    assert_eq!(term, Term::Lost);
    assert_eq!(server.world.running("one"), 0, "the pass is dropped");
    assert!(
        cancelled.load(Ordering::SeqCst),
        "and what it left behind has ended"
    );
}

/// The next leader waits for the Lease, and not for the slowest pass of this one.
#[tokio::test(start_paused = true)]
async fn a_pass_that_hangs_does_not_keep_the_lease() {
    let (server, store) = (Server::default(), Store::default());
    server.widget("one", sized(1));
    server.world.hold("one");
    let elector = elector(&store.link(Duration::ZERO));
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
