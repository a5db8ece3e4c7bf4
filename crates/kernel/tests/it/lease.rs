//! Leader election against an in-memory API server with one Lease and a paused clock: minutes of partitions take
//! milliseconds, and tests can check durations.

mod cluster;
mod fence;
pub(crate) mod store;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use stanchion_kernel::lease::{Elector, Identity, Leadership, LeaseSettings, Term, Timings};
use store::{Link, Store};
use tokio::{
    sync::{Notify, oneshot},
    time::{Instant, advance, sleep},
};
use tokio_util::sync::CancellationToken;

const RETRY: Duration = Duration::from_secs(2);
const RENEW: Duration = Duration::from_secs(7);
const LEASE: Duration = Duration::from_secs(10);

fn elector(link: &Link, name: &str) -> Elector {
    let settings = LeaseSettings {
        namespace: "default".into(),
        name: "stanchion".into(),
        identity: Identity::new(name),
        timings: Timings::default(),
    };
    Elector::new(link.client(), settings)
}

/// Starts to lead in the background and returns the leadership.
async fn leader(
    link: &Link,
    name: &str,
) -> (Leadership, tokio::task::JoinHandle<Term<()>>, CancellationToken) {
    let (elector, stop, (send, receive)) =
        (elector(link, name), CancellationToken::new(), oneshot::channel());
    let shutdown = stop.clone();
    let task = tokio::spawn(async move {
        let drained = shutdown.clone();
        elector
            .lead(shutdown, |leadership| async move {
                send.send(leadership).unwrap();
                drained.cancelled().await;
            })
            .await
    });
    (receive.await.unwrap(), task, stop)
}

#[tokio::test(start_paused = true)]
async fn two_electors_never_lead_at_once() {
    let store = Store::default();
    let (leading, terms) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let stop = CancellationToken::new();
    let links: Vec<Link> = (0..3).map(|_| store.link(Duration::from_millis(30))).collect();
    let mut tasks = Vec::new();
    for (i, link) in links.iter().enumerate() {
        let (elector, stop) = (elector(link, &format!("replica-{i}")), stop.clone());
        let (leading, terms) = (leading.clone(), terms.clone());
        tasks.push(tokio::spawn(async move {
            while !stop.is_cancelled() {
                elector
                    .lead(stop.clone(), |_| async {
                        terms.fetch_add(1, SeqCst);
                        let alone = Alone::enter(leading.clone());
                        stop.cancelled().await;
                        drop(alone);
                    })
                    .await;
            }
        }));
    }
    // One link after another is cut for longer than the lease and restored.
    for round in 0..60_usize {
        let link = &links[(round * 7) % 3];
        link.cut(true);
        sleep(Duration::from_millis(9_000 + 611 * (round as u64 % 13))).await;
        link.cut(false);
        sleep(Duration::from_millis(700 * (round as u64 % 5))).await;
    }
    stop.cancel();
    for task in tasks {
        task.await.unwrap();
    }
    assert!(
        terms.load(SeqCst) > 10,
        "leadership moved only {} times",
        terms.load(SeqCst)
    );
}

/// Panics when entered twice.
struct Alone(Arc<AtomicUsize>);

impl Alone {
    fn enter(count: Arc<AtomicUsize>) -> Self {
        assert_eq!(count.fetch_add(1, SeqCst), 0, "two leaders at once");
        Self(count)
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

#[tokio::test(start_paused = true)]
async fn of_two_that_race_for_the_lease_one_gets_409_and_waits() {
    let store = Store::default();
    // Slow enough that both read "no such lease" before either has written.
    let (a, b) = (
        store.link(Duration::from_millis(100)),
        store.link(Duration::from_millis(100)),
    );
    let first = tokio::spawn({
        let elector = elector(&a, "a");
        async move {
            elector
                .lead(CancellationToken::new(), |_| std::future::pending::<()>())
                .await
        }
    });
    let second = tokio::spawn({
        let elector = elector(&b, "b");
        async move {
            elector
                .lead(CancellationToken::new(), |_| std::future::pending::<()>())
                .await
        }
    });
    sleep(Duration::from_mins(1)).await;
    assert_eq!(store.conflicts(), 1);
    assert_eq!(store.spec().lease_transitions, Some(0));
    first.abort();
    second.abort();
}

#[tokio::test(start_paused = true)]
async fn a_foreign_edit_of_the_lease_does_not_end_the_term() {
    let store = Store::default();
    let (leadership, task, stop) = leader(&store.link(Duration::from_millis(10)), "a").await;
    for _ in 0..40 {
        store.touch();
        sleep(Duration::from_millis(505)).await;
        assert!(leadership.is_valid());
    }
    stop.cancel();
    assert_eq!(task.await.unwrap(), Term::Finished(()));
}

#[tokio::test(start_paused = true)]
async fn work_is_dropped_at_the_renew_deadline_when_the_api_is_gone() {
    let store = Store::default();
    let link = store.link(Duration::ZERO);
    let (leadership, task, _stop) = leader(&link, "a").await;
    sleep(RETRY * 3).await;
    link.cut(true);
    let cut = Instant::now();
    assert_eq!(task.await.unwrap(), Term::Lost);
    assert!(!leadership.is_valid());
    // The last renewal was up to one period before the cut.
    assert!(
        cut.elapsed() <= RENEW && cut.elapsed() + RETRY >= RENEW,
        "{:?}",
        cut.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn errors_shorter_than_the_deadline_are_ridden_out() {
    let store = Store::default();
    let link = store.link(Duration::ZERO);
    let (leadership, task, stop) = leader(&link, "a").await;
    for _ in 0..10 {
        link.cut(true);
        sleep(RENEW * 3 / 5).await;
        link.cut(false);
        // One request may still hang on the cut link.
        sleep(RENEW / 3 + RETRY).await;
        assert!(leadership.is_valid());
    }
    stop.cancel();
    assert_eq!(task.await.unwrap(), Term::Finished(()));
}

#[tokio::test(start_paused = true)]
async fn a_paused_process_does_not_run_its_work_once_more() {
    let store = Store::default();
    let (wake, runs) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
    let elector = elector(&store.link(Duration::ZERO), "a");
    let task = tokio::spawn({
        let (wake, runs) = (wake.clone(), runs.clone());
        async move {
            elector
                .lead(CancellationToken::new(), |_| async {
                    loop {
                        wake.notified().await;
                        runs.fetch_add(1, SeqCst);
                    }
                })
                .await
        }
    });
    sleep(RETRY).await;
    wake.notify_one();
    sleep(RETRY).await;
    assert_eq!(runs.load(SeqCst), 1);
    // The work is already in the run queue when the process stops for a minute.
    wake.notify_one();
    advance(Duration::from_mins(1)).await;
    assert_eq!(task.await.unwrap(), Term::<()>::Lost);
    assert_eq!(runs.load(SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_taken_over_after_its_duration_whatever_its_timestamps_say() {
    for clock in ["1990-01-01T00:00:00.000000Z", "2190-01-01T00:00:00.000000Z"] {
        let store = Store::default();
        store.hold("a-replica-that-died", clock);
        let started = Instant::now();
        let (_leadership, task, stop) = leader(&store.link(Duration::ZERO), "b").await;
        assert!(
            (LEASE..=LEASE + RETRY * 2).contains(&started.elapsed()),
            "{:?}",
            started.elapsed()
        );
        assert_eq!(store.spec().lease_transitions, Some(1));
        stop.cancel();
        task.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn release_lets_the_next_one_in_without_waiting() {
    let store = Store::default();
    let (first, task, stop) = leader(&store.link(Duration::ZERO), "a").await;
    let other = store.link(Duration::ZERO);
    let next = tokio::spawn(async move {
        let (second, task, stop) = leader(&other, "b").await;
        (Instant::now(), second, task, stop)
    });
    sleep(LEASE).await;
    stop.cancel();
    assert_eq!(task.await.unwrap(), Term::Finished(()));
    assert!(!first.is_valid());
    assert_eq!(store.spec().holder_identity.as_deref(), Some(""));
    let released = Instant::now();
    let (elected, second, task, stop) = next.await.unwrap();
    assert!(elected - released <= RETRY * 2);
    assert!(second.is_valid());
    stop.cancel();
    task.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_deleted_lease_is_written_again_by_its_leader() {
    let store = Store::default();
    let (leadership, task, stop) = leader(&store.link(Duration::ZERO), "a").await;
    let other = tokio::spawn({
        let elector = elector(&store.link(Duration::ZERO), "b");
        async move {
            elector
                .lead(CancellationToken::new(), |_| std::future::pending::<()>())
                .await
        }
    });
    sleep(LEASE).await;
    store.delete();
    sleep(LEASE * 2).await;
    assert!(leadership.is_valid());
    assert!(store.spec().holder_identity.unwrap().starts_with("a_"));
    stop.cancel();
    task.await.unwrap();
    other.abort();
}

#[tokio::test(start_paused = true)]
async fn shutdown_before_the_election_ends_the_wait() {
    let store = Store::default();
    store.hold("other", "2026-01-01T00:00:00.000000Z");
    let (elector, stop) = (
        elector(&store.link(Duration::ZERO), "b"),
        CancellationToken::new(),
    );
    let task = tokio::spawn({
        let stop = stop.clone();
        async move { elector.lead(stop, |_| async { panic!("must not lead") }).await }
    });
    sleep(RETRY).await;
    stop.cancel();
    assert!(matches!(task.await.unwrap(), Term::NeverLed));
    assert_eq!(store.spec().holder_identity.as_deref(), Some("other"));
}
