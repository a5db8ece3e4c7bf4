//! Changes on a healthy server while others do not answer.

use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use serde_json::json;
use stanchion_bench_env::{BenchEnv, PASSWORD};
use stanchion_testkit::port;
use stanchion_testkit::postgres::{ADMIN, ADMIN_PASSWORD, Postgres, Version};
use stanchion_testkit::proxy::Proxy;
use tokio::net::TcpListener;
use tokio::time::sleep;

use crate::objects::{change, create, followed, instance, secret, user, users};

/// Users on each server that does not answer.
const VICTIMS: usize = 40;
/// Changes that are measured.
const CHANGES: usize = 60;
/// The worst change on the healthy server, whatever the others do.
const GOAL: Duration = Duration::from_secs(1);

/// Prints the table. Returns whether every change was followed, and in time while others do not answer.
pub(crate) async fn run(binary: &Path) -> bool {
    let env = BenchEnv::new("faults").await;
    let client = env.cluster().client().await;
    let namespace = env.namespace();
    create(
        &client,
        namespace,
        secret(PASSWORD, &json!({ PASSWORD: "correct horse" })),
    )
    .await;
    let admin = json!({ "username": ADMIN, "password": ADMIN_PASSWORD });
    create(&client, namespace, secret("admin", &admin)).await;
    for number in 0..3 {
        create(&client, namespace, user(&format!("well-{number}"), None)).await;
    }
    let users = users(&client, namespace);
    let _operator = env.operator_with(
        binary,
        &[
            "--controllers",
            "user",
            "--no-webhooks",
            "--allow-network",
            "127.0.0.0/8",
        ],
    );
    for number in 0..3 {
        followed(&users, &format!("well-{number}"), 1)
            .await
            .expect("the operator works");
    }
    println!("| other servers | changes | median | worst | goal |");
    println!("|---|---:|---:|---:|---:|");
    let mut held = measure(&users, "none, for comparison", None).await;

    // The operator has idle sessions there when it freezes.
    let lively = Postgres::start(Version::V15).await;
    let database = format!("CREATE DATABASE {}", stanchion_bench_env::DATABASE);
    lively.execute("postgres", &database).await;
    let freezer = Proxy::postgres(lively.address()).await;
    create(&client, namespace, instance("frozen", freezer.port())).await;
    for number in 0..VICTIMS {
        create(
            &client,
            namespace,
            user(&format!("frozen-{number}"), Some("frozen")),
        )
        .await;
    }
    for number in 0..VICTIMS {
        followed(&users, &format!("frozen-{number}"), 1)
            .await
            .expect("a user on a server that still answers");
    }

    let locked = Postgres::start(Version::V15).await;
    locked
        .execute(
            "postgres",
            &format!("CREATE DATABASE {}", stanchion_bench_env::DATABASE),
        )
        .await;
    let holder = locked
        .connect(ADMIN, ADMIN_PASSWORD, "postgres")
        .await
        .expect("a session");
    holder
        .batch_execute("BEGIN; LOCK TABLE pg_catalog.pg_authid IN EXCLUSIVE MODE")
        .await
        .expect("a lock");
    let hole = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = hole.local_addr().expect("an address");
    let silence = tokio::spawn(async move {
        let mut kept = Vec::new();
        while let Ok(connection) = hole.accept().await {
            kept.push(connection);
        }
    });
    for (name, port) in [
        ("dead", port::free()),
        ("locked", locked.port()),
        ("hole", address.port()),
    ] {
        create(&client, namespace, instance(name, port)).await;
        for number in 0..VICTIMS {
            create(&client, namespace, user(&format!("{name}-{number}"), Some(name))).await;
        }
    }
    freezer.hold();
    for number in 0..VICTIMS {
        change(&users, &format!("frozen-{number}"), 2).await;
    }
    // From the beginning: the operator has not found out yet.
    let title = "one dead, one locked, one silent, one frozen, 40 users each";
    held &= measure(&users, title, Some(GOAL)).await;
    silence.abort();
    held
}

/// Measures changes. Returns whether all were followed, and the worst within the goal.
async fn measure(users: &kube::Api<kube::api::DynamicObject>, title: &str, goal: Option<Duration>) -> bool {
    let mut times = Vec::new();
    for number in 0..CHANGES {
        let name = format!("well-{}", number % 3);
        let limit = 2 + number % 80 + if goal.is_some() { 100 } else { 0 };
        if let Some(generation) = change(users, &name, limit).await {
            times.extend(followed(users, &name, generation).await);
        }
        sleep(Duration::from_millis(200)).await;
    }
    times.sort();
    let seconds = |time: Option<&Duration>| {
        time.map_or("never".to_owned(), |time| format!("{:.2} s", time.as_secs_f64()))
    };
    println!(
        "| {title} | {} | {} | {} | {} |",
        times.len(),
        seconds(times.get(times.len() / 2)),
        seconds(times.last()),
        goal.map_or("none".to_owned(), |goal| format!("{} s", goal.as_secs()))
    );
    let in_time = goal.is_none_or(|goal| times.last().is_some_and(|worst| *worst <= goal));
    times.len() == CHANGES && in_time
}
