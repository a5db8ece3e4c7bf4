//! Searches for passwords where none may be: in the whole process list, in the operator's output, and in everything
//! that it writes except the Secret.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::json;
use stanchion_api::user::PostgresUser;
use stanchion_testkit::cluster::Cluster;
use stanchion_testkit::postgres::{Database, Version};
use stanchion_testkit::{unique, wait};

use crate::DEADLINE;
use crate::operator::Operator;
use crate::users::{UrlFile, postgres_user, ready};

/// A part of every password of this test. It is composed here, so that no other process contains it.
fn canary() -> String {
    ["cAn", "ArY"].concat()
}

/// Processes whose arguments or environment contain the canary, except those of this test.
fn told_by_processes(canary: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_string_lossy().parse::<u32>().ok());
    pids.filter(|pid| *pid != std::process::id())
        .flat_map(|pid| ["cmdline", "environ"].map(|file| format!("/proc/{pid}/{file}")))
        // A process may end, or belong to another user.
        .filter(|path| fs::read(path).is_ok_and(|text| String::from_utf8_lossy(&text).contains(canary)))
        .collect()
}

/// Reads the process list repeatedly, in a thread that ends with this value, even if the test panics. (A runtime would
/// wait for a blocking task, and therefore forever if nothing stops it.)
struct ProcessWatch {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<String>>>,
}

impl ProcessWatch {
    fn start(canary: &str) -> Self {
        let (stop, canary) = (Arc::new(AtomicBool::new(false)), canary.to_owned());
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut reported = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                reported.extend(told_by_processes(&canary));
                thread::sleep(Duration::from_millis(50));
            }
            reported
        });
        Self {
            stop,
            thread: Some(thread),
        }
    }

    /// Ends it; returns what it has found.
    fn found(mut self) -> Vec<String> {
        self.end()
    }

    fn end(&mut self) -> Vec<String> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread
            .take()
            .and_then(|thread| thread.join().ok())
            .unwrap_or_default()
    }
}

impl Drop for ProcessWatch {
    fn drop(&mut self) {
        self.end();
    }
}

/// All objects of a kind in the namespace, with everything that the API server stores.
async fn objects(cluster: &Cluster, namespace: &str, kind: &GroupVersionKind) -> String {
    let resource = ApiResource::from_gvk(kind);
    let api: Api<DynamicObject> = Api::namespaced_with(cluster.client().await, namespace, &resource);
    let listed = api.list(&ListParams::default()).await.unwrap();
    serde_json::to_string(&listed.items).unwrap()
}

/// A18: the whole life of a user, with a given, a rotated and a generated password, and an administrator's.
#[tokio::test]
async fn no_password_is_told() {
    let cluster = Cluster::shared().await;
    cluster.install_crds(stanchion_api::crds()).await;
    let (namespace, canary) = (cluster.namespace("canary").await, canary());
    let database = Database::of(Version::V15).await;
    let admin = unique::name("admin");
    // The test itself must not write the password to the server's log.
    let quiet = database.admin().await;
    quiet.batch_execute("SET log_statement TO none").await.unwrap();
    let make = format!("CREATE ROLE {admin} LOGIN SUPERUSER PASSWORD '{canary}-admin'");
    quiet.batch_execute(&make).await.unwrap();
    let url = database
        .server()
        .url_of(&admin, &format!("{canary}-admin"), "postgres");
    let file = UrlFile::new(&url);
    let mut arguments = vec!["--namespace", &namespace, "--operator-namespace", &namespace];
    arguments.push("--no-webhooks");
    arguments.extend(file.arguments());
    let operator = Operator::start(&cluster.kubeconfig_path(), &arguments);
    operator.ready().await;

    let watch = ProcessWatch::start(&canary);
    let password = |value: &str| {
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "given" },
            "stringData": { "password": format!("{canary}-{value}") },
        })
    };
    let role = unique::name("u");
    let mut given = postgres_user("given", &role, &database);
    given["spec"]["password"] = json!(null);
    given["spec"]["passwordSecretRef"] = json!({ "name": "given" });
    given["spec"]["credentialsSecret"] = json!({ "name": "out" });
    cluster.apply(&password("first").to_string(), &namespace).await;
    cluster.apply(&given.to_string(), &namespace).await;
    ready(&operator, cluster, &namespace, "given").await;
    cluster.apply(&password("second").to_string(), &namespace).await;
    let second = format!("{canary}-second");
    operator
        .wait_for("the new password", async || {
            database.connect(&role, &second).await.is_ok()
        })
        .await;
    let secrets: Api<Secret> = Api::namespaced(cluster.client().await, &namespace);
    operator
        .wait_for("the application's Secret", async || {
            let out = secrets.get("out").await.unwrap().data.unwrap_or_default();
            out["password"].0 == second.as_bytes()
        })
        .await;

    let (_, metrics) = operator.get("metrics", "/metrics").await.unwrap();
    assert!(metrics.contains("stanchion_postgres_statements"), "{metrics}");
    let users = GroupVersionKind::gvk("db.example.com", "v1alpha1", "PostgresUser");
    let events = GroupVersionKind::gvk("events.k8s.io", "v1", "Event");
    let (users, events) = (
        objects(cluster, &namespace, &users).await,
        objects(cluster, &namespace, &events).await,
    );
    assert!(users.contains("managedFields") && events.contains("UserCreated"));
    let given: Api<PostgresUser> = Api::namespaced(cluster.client().await, &namespace);
    wait::deleted(&given, "given", DEADLINE).await;
    assert_eq!(watch.found(), [] as [String; 0]);
    for (place, text) in [
        ("/metrics", metrics),
        ("objects", users),
        ("events", events),
        ("the operator's log", operator.log()),
        ("the server's log", database.server().log().text().to_owned()),
    ] {
        assert!(!text.contains(&canary), "{place}: {text}");
    }
    operator.stop().await;
}

/// The search itself finds a planted password.
#[tokio::test]
async fn a_password_in_a_process_list_would_be_found() {
    let canary = unique::name("found");
    let mut child = std::process::Command::new("sleep")
        .arg("60")
        .env("PGPASSWORD", &canary)
        .spawn()
        .unwrap();
    let environment = format!("/proc/{}/environ", child.id());
    // A process that was just started may not have its environment yet.
    wait::eventually(DEADLINE, "its environment", async || {
        fs::read(&environment).is_ok_and(|text| !text.is_empty())
    })
    .await;
    let reported = told_by_processes(&canary);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(reported, [environment]);
}

/// A failing test ends while the process list is watched: the watch and its thread are dropped.
#[tokio::test]
async fn the_watch_ends_with_a_test_that_fails() {
    let watched = tokio::spawn(async {
        let watch = ProcessWatch::start("nowhere");
        let stop = Arc::clone(&watch.stop);
        assert!(stop.load(Ordering::Relaxed), "a failure while it watches");
    });
    assert!(watched.await.unwrap_err().is_panic());
}
