//! The time until another replica has taken over.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kube::Api;
use kube::api::DynamicObject;
use serde_json::json;
use stanchion_bench_env::{BenchEnv, PASSWORD};
use stanchion_testkit::process::Signal;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::objects::{change, create, followed, secret, user, users};
use crate::replicas::{Overlap, Replicas};

/// Users that are changed all the time.
const LOAD: usize = 50;
/// The time between two changes.
const PAUSE: Duration = Duration::from_millis(50);
/// The time that a replica has to show that it still works although it should not.
const AFTERWARDS: Duration = Duration::from_secs(3);
/// How long a replica stands still. The Lease is another replica's by then.
const FROZEN: Duration = Duration::from_secs(20);

/// What happens to the leader, and the goal.
const FAULTS: [(&str, Signal, &str); 3] = [
    ("SIGKILL", Signal::Kill, "15 s"),
    ("SIGTERM", Signal::Term, "2 s"),
    ("SIGSTOP for 20 s", Signal::Stop, ""),
];

/// Prints the table. Returns whether there was never a second leader, and every change was followed.
pub(crate) async fn run(binary: &Path, rounds: usize) -> bool {
    let env = BenchEnv::new("faults").await;
    let client = env.cluster().client().await;
    let namespace = env.namespace();
    create(
        &client,
        namespace,
        secret(PASSWORD, &json!({ PASSWORD: "correct horse" })),
    )
    .await;
    for number in 0..LOAD {
        create(&client, namespace, user(&format!("load-{number}"), None)).await;
    }
    create(&client, namespace, user("probe", None)).await;
    let users = users(&client, namespace);
    let mut replicas = Replicas::start(&env, binary.to_owned()).await;
    followed(&users, "probe", 1).await.expect("the operator works");
    let (load, changes) = load(users.clone());
    println!(
        "| the leader gets | takeovers | median | worst | goal | changes of the former leader | its writes | its reads |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|");
    let (mut held, mut limit, mut examples) = (true, 1, Vec::new());
    for (title, signal, goal) in FAULTS {
        let (mut times, mut overlap) = (Vec::new(), Overlap::default());
        for _ in 0..rounds {
            sleep(AFTERWARDS).await;
            let (leader, checkpoint) = (replicas.leader().await, replicas.checkpoint());
            replicas.signal(leader, signal);
            limit = limit % 90 + 1;
            let Some(generation) = change(&users, "probe", limit).await else {
                continue;
            };
            let took = followed(&users, "probe", generation).await;
            held &= took.is_some();
            times.extend(took);
            if matches!(signal, Signal::Stop) {
                sleep(FROZEN.saturating_sub(took.unwrap_or_default())).await;
                replicas.signal(leader, Signal::Cont);
            }
            sleep(AFTERWARDS).await;
            let found = replicas.overlap(&checkpoint, leader).await;
            overlap.changes.extend(found.changes);
            overlap.writes.extend(found.writes);
            overlap.reads += found.reads;
            replicas.begin();
        }
        times.sort();
        let seconds = |time: Option<&Duration>| {
            time.map_or("never".to_owned(), |time| format!("{:.1} s", time.as_secs_f64()))
        };
        let Overlap {
            changes,
            reads,
            writes,
        } = overlap;
        held &= changes.is_empty() && writes.is_empty() && times.len() == rounds;
        println!(
            "| {title} | {} | {} | {} | {goal} | {} | {} | {reads} |",
            times.len(),
            seconds(times.get(times.len() / 2)),
            seconds(times.last()),
            changes.len(),
            writes.len()
        );
        examples.extend(changes.into_iter().chain(writes).take(5));
    }
    load.abort();
    println!(
        "\n{} changes of {LOAD} users meanwhile",
        changes.load(Ordering::Relaxed)
    );
    for example in examples {
        println!("of a former leader: {example}");
    }
    held
}

/// Changes one user after the other, and counts.
fn load(users: Api<DynamicObject>) -> (JoinHandle<()>, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counting = Arc::clone(&count);
    let task = tokio::spawn(async move {
        for number in 0.. {
            let limit = 1 + number / LOAD % 90;
            if change(&users, &format!("load-{}", number % LOAD), limit)
                .await
                .is_some()
            {
                counting.fetch_add(1, Ordering::Relaxed);
            }
            sleep(PAUSE).await;
        }
    });
    (task, count)
}
