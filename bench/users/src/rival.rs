//! The same work by another operator: movetokube's, which also creates roles on an existing server.
//!
//! Nothing of it is in this repository. To install it:
//!
//!     git clone https://github.com/movetokube/postgres-operator rival
//!     (cd rival && go build -o manager ./cmd)
//!     cargo run -p stanchion-bench-users -- --binary target/release/stanchion --objects 200 --rival rival
//!
//! Both get users with a generated password and a Secret for the application, on one database, and the privilege to
//! connect. Each has its own cluster and server, one after the other.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use stanchion_bench_env::{BenchEnv, DATABASE, PASSWORD, RIVAL, Usage, row};

use crate::made;

/// Measures both and prints the ratio.
pub(crate) async fn compare(ours: &Path, rival: &Path, objects: usize) {
    println!("stanchion");
    let first = stanchion(ours, objects).await;
    println!("\nmovetokube");
    let second = movetokube(rival, objects).await;
    println!();
    let ratio = second.as_secs_f64() / first.as_secs_f64();
    row("movetokube takes", &format!("{ratio:.1} times as long"));
}

async fn stanchion(binary: &Path, objects: usize) -> Duration {
    let env = BenchEnv::new("ours").await;
    let user = |number: usize| {
        json!({
            "apiVersion": "db.example.com/v1alpha1", "kind": "PostgresUser",
            "metadata": { "name": format!("user-{number}") },
            "spec": {
                "username": format!("user_{number}"), "database": DATABASE, "privileges": ["CONNECT"],
                "password": { "generate": {} },
            },
        })
    };
    env.create((0..objects).map(user)).await;
    let (checkpoint, start) = (env.checkpoint(), Instant::now());
    let operator = env.operator(binary);
    env.users_ready(objects).await;
    let took = start.elapsed();
    made(objects, took, &env.count(&checkpoint).await);
    used(operator.pid());
    took
}

async fn movetokube(directory: &Path, objects: usize) -> Duration {
    let env = BenchEnv::new("rival").await;
    let crds = directory.join("config/crd/bases");
    let kubectl = env.cluster().kubectl().expect("kubectl on this machine");
    let apply = ["apply", "--server-side", "-f", crds.to_str().expect("a path")];
    kubectl.run(&apply).await.expect("its CRDs");
    let wait = [
        "wait",
        "--for=condition=Established",
        "crd",
        "--all",
        "--timeout=60s",
    ];
    kubectl.run(&wait).await.expect("kinds that are served");
    let object = |kind: &str, name: &str, spec: Value| {
        json!({
            "apiVersion": "db.movetokube.com/v1alpha1", "kind": kind, "metadata": { "name": name }, "spec": spec,
        })
    };
    let user = |number: usize| {
        let name = format!("user-{number}");
        let spec = json!({
            "role": format!("user_{number}"), "database": "app", "privileges": "READ", "secretName": name,
        });
        object("PostgresUser", &name, spec)
    };
    let operator = || {
        env.launch(&directory.join("manager"), "rival")
            .args(["--leader-elect=false", "--metrics-bind-address=0"])
            .args(["--health-probe-bind-address=127.0.0.1:0"])
            .env("POSTGRES_HOST", env.server().address().to_string())
            .env("POSTGRES_USER", RIVAL)
            .env("POSTGRES_PASS", PASSWORD)
            .env("POSTGRES_DEFAULT_DATABASE", "postgres")
            .env("POSTGRES_URI_ARGS", "sslmode=disable")
            .env("WATCH_NAMESPACE", env.namespace())
            .spawn()
            .expect("the rival starts")
    };
    // Its users wait for the database with increasing delays: the benchmark creates it first and does not count it.
    let database = object("Postgres", "app", json!({ "database": "app" }));
    env.cluster().apply(&database.to_string(), env.namespace()).await;
    let first = operator();
    let status = [
        "-n",
        env.namespace(),
        "wait",
        "postgres.db.movetokube.com/app",
        "--timeout=120s",
    ];
    let made = [&status[..], &["--for=jsonpath={.status.succeeded}=true"]].concat();
    kubectl.run(&made).await.expect("its database");
    drop(first);
    env.create((0..objects).map(user)).await;
    let (checkpoint, start) = (env.checkpoint(), Instant::now());
    let operator = operator();
    let succeeded = |object: &Value| object["status"]["succeeded"] == true;
    env.converge(&user(0), objects, succeeded).await;
    let took = start.elapsed();
    crate::made(objects, took, &env.count_of(&checkpoint, "manager/", RIVAL).await);
    used(operator.pid());
    took
}

fn used(pid: u32) {
    let usage = Usage::of(pid);
    let (cpu, memory) = (usage.cpu.as_secs_f64(), usage.peak_mib());
    row("CPU of the operator", &format!("{cpu:.1} s"));
    row("memory of the operator", &format!("{memory:.1} MiB at most"));
}
