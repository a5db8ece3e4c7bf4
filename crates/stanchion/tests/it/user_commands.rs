//! The commands for users: `status`, `report`, the manual; with their own kubeconfig and permissions.

use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};
use stanchion_testkit::cluster::{Cluster, Grant, rule};
use stanchion_testkit::process::Launch;
use stanchion_testkit::scratch::Scratch;
use stanchion_testkit::{port, wait};

use crate::DEADLINE;
use crate::operator::{BINARY, Operator, command, failure, stdout, text};

/// Runs a command on the cluster of this kubeconfig.
pub(crate) async fn run(kubeconfig: &Path, words: &[&str]) -> Output {
    let mut command = command(words);
    command.env("KUBECONFIG", kubeconfig).env_remove("NO_COLOR");
    tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap()
}

fn user(name: &str) -> Value {
    json!({
        "apiVersion": "db.example.com/v1alpha1", "kind": "PostgresUser", "metadata": { "name": name },
        "spec": { "username": name, "database": "none", "privileges": ["CONNECT"], "password": { "generate": {} } },
    })
}

#[tokio::test]
async fn status_shows_what_is_there_and_says_what_it_may_not_read() {
    let cluster = Cluster::shared().await;
    cluster.install_crds(stanchion_api::crds()).await;
    let namespace = cluster.namespace("status").await;
    cluster.apply(&user("alice").to_string(), &namespace).await;
    let admin = cluster.kubeconfig_path();
    let here = ["-n", namespace.as_str()];
    let status = |words: &[&'static str]| [&["status"], &here[..], words].concat();
    let output = run(&admin, &status(&[])).await;
    let shown = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(
        shown.contains("PostgresUser") && shown.contains("alice") && shown.contains("Unknown"),
        "{shown}"
    );
    assert!(!shown.contains('\u{1b}'), "colours only on a terminal: {shown}");
    assert!(shown.contains("1 object: 1 Unknown"), "{shown}");

    // With an operator that has no server for her: the operator's own message.
    let scope = [
        "--namespace",
        &namespace,
        "--operator-namespace",
        &namespace,
        "--no-webhooks",
    ];
    let operator = Operator::start(&admin, &scope);
    operator.ready().await;
    let words = status(&["-o", "json"]);
    let row = operator
        .wait_for("the state of the user", async || {
            let output = run(&admin, &words).await;
            let said: Value = serde_json::from_slice(&output.stdout).unwrap();
            let row = said["objects"][0].clone();
            if row["state"] == "Unknown" || row["waitsFor"].is_null() {
                Err(row.to_string())
            } else {
                Ok(row)
            }
        })
        .await;
    operator.stop().await;
    assert!(
        ["Failed", "NotReady"].contains(&row["state"].as_str().unwrap()),
        "{row}"
    );
    assert!(
        row["waitsFor"].as_str().is_some_and(|waits| !waits.is_empty()),
        "{row}"
    );

    let tree = text(
        &run(&admin, &status(&["pguser/alice", "--color", "always"]))
            .await
            .stdout,
    );
    assert!(
        tree.contains("conditions") && tree.contains("Ready=False") && tree.contains("next"),
        "{tree}"
    );
    assert!(tree.contains('\u{1b}'), "{tree}");

    // A user who may read users, and nothing else.
    let grant = Grant::In(
        namespace.clone(),
        vec![rule("db.example.com", &["postgresusers"], &["get", "list"])],
    );
    let somebody = cluster.user(&namespace, "somebody", &[grant]).await;
    let shown = text(&run(somebody.kubeconfig_path(), &status(&[])).await.stdout);
    assert!(shown.contains("alice"), "{shown}");
    assert!(
        shown.contains("not shown: supabaseprojects: you may not list them"),
        "{shown}"
    );
    let tree = text(
        &run(somebody.kubeconfig_path(), &status(&["postgresuser/alice"]))
            .await
            .stdout,
    );
    assert!(
        tree.contains("not shown") && tree.contains("events: you may not"),
        "{tree}"
    );

    let missing = run(&admin, &status(&["postgresuser/nobody"])).await;
    let (line, code) = failure(&missing);
    assert!(line.contains("does not exist") && code == Some(1), "{line}");
}

/// If standard output is not a terminal, one line for each change, like `kubectl get -w`.
#[tokio::test]
async fn watching_shows_what_changes_and_only_that() {
    let cluster = Cluster::shared().await;
    cluster.install_crds(stanchion_api::crds()).await;
    let namespace = cluster.namespace("watch").await;
    cluster.apply(&user("alice").to_string(), &namespace).await;
    let scratch = Scratch::new("stanchion-watch-").unwrap();
    let watching = Launch::new(BINARY, scratch.path().join("log"))
        .args(["status", "-w", "-n", &namespace])
        .env("KUBECONFIG", cluster.kubeconfig_path())
        .spawn()
        .unwrap();
    let shown = async |what: &str| {
        wait::within(DEADLINE)
            .eventually(what, async || {
                let log = watching.log();
                if log.contains(what) { Ok(()) } else { Err(log) }
            })
            .await;
    };
    shown("alice").await;
    cluster.apply(&user("bob").to_string(), &namespace).await;
    shown("bob").await;
    let log = watching.log();
    assert_eq!(log.matches("alice").count(), 1, "{log}");
}

#[tokio::test]
async fn without_a_cluster_it_is_one_line() {
    let scratch = Scratch::new("stanchion-nowhere-").unwrap();
    let file = scratch.path().join("kubeconfig");
    let server = format!("https://127.0.0.1:{}", port::free());
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "x",
        "clusters": [{ "name": "x", "cluster": { "server": server } }],
        "contexts": [{ "name": "x", "context": { "cluster": "x", "user": "x" } }],
        "users": [{ "name": "x", "user": { "token": "hunter2-unseen" } }],
    });
    std::fs::write(&file, config.to_string()).unwrap();
    for words in [&["status"][..], &["doctor"]] {
        let (line, code) = failure(&run(&file, words).await);
        assert!(line.contains(&server) && !line.contains("hunter2"), "{line}");
        assert_eq!(code, Some(1));
    }
    let (line, _) = failure(&run(&file, &["status", "--context", "elsewhere"]).await);
    assert!(line.contains("elsewhere"), "{line}");
}

/// The kubectl plugin is the same program with another name.
#[tokio::test]
async fn it_is_a_plugin_of_kubectl_and_two_kubeconfigs_are_one() {
    let cluster = Cluster::shared().await;
    cluster.install_crds(stanchion_api::crds()).await;
    let namespace = cluster.namespace("plugin").await;
    let scratch = Scratch::new("stanchion-plugin-").unwrap();
    let plugin = scratch.path().join("kubectl-stanchion");
    std::os::unix::fs::symlink(BINARY, &plugin).unwrap();
    // The context is in one file, and everything that it names in the other.
    let first = scratch.path().join("first");
    std::fs::write(
        &first,
        json!({ "apiVersion": "v1", "kind": "Config" }).to_string(),
    )
    .unwrap();
    let both = std::env::join_paths([first, cluster.kubeconfig_path()]).unwrap();
    let mut command = std::process::Command::new(&plugin);
    command.args(["status", "-n", &namespace]).env("KUBECONFIG", both);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap();
    assert_eq!(text(&output.stdout), "no objects\n", "{}", text(&output.stderr));
    let help = std::process::Command::new(&plugin)
        .args(["status", "--help"])
        .output();
    let help = text(&help.unwrap().stdout);
    assert!(help.contains("Usage: kubectl stanchion status"), "{help}");
}

/// A page for each command that the help shows, which `man` can show.
#[test]
fn every_command_has_a_manual_page() {
    let scratch = Scratch::new("stanchion-man-").unwrap();
    let folder = scratch.path().join("man1");
    stdout([std::ffi::OsStr::new("man"), folder.as_os_str()]);
    let help = stdout(["--help"]);
    let (_, commands) = help.split_once("Commands:\n").unwrap();
    let commands = commands.lines().take_while(|line| line.starts_with("  "));
    let names: Vec<&str> = commands
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(names.len() > 8, "{names:?}");
    for name in names {
        let page = std::fs::read_to_string(folder.join(format!("stanchion-{name}.1"))).unwrap();
        assert!(page.contains(".TH") && page.contains(".SH NAME"), "{page}");
    }
    let run = std::fs::read_to_string(folder.join("stanchion-run.1")).unwrap();
    assert!(run.contains(r"leader\-elect"), "{run}");
    assert!(
        !folder.join("stanchion-generate.1").exists(),
        "what is hidden has none"
    );
}

/// The canary is in everything that a report could include, and not in the report.
#[tokio::test]
async fn a_report_has_no_secrets() {
    let canary = ["cAn", "ArY", "-report"].concat();
    let cluster = Cluster::shared().await;
    cluster.install_crds(stanchion_api::crds()).await;
    let namespace = cluster.namespace("report").await;
    let mut user = user("alice");
    user["metadata"]["annotations"] = json!({ "example.com/note": canary });
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "alice" }, "stringData": { "password": canary },
    });
    let pod = json!({ "metadata": { "labels": { "app.kubernetes.io/name": "stanchion" } }, "spec": { "containers": [{
        "name": "operator", "image": "example.com/stanchion:1",
        "args": ["run", format!("--postgres-url=postgres://admin:{canary}@db/app")],
        "env": [{ "name": "STANCHION_POSTGRES_URL", "value": canary }],
    }] } });
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": "stanchion", "labels": { "app.kubernetes.io/name": "stanchion" } },
        "spec": { "replicas": 1, "selector": { "matchLabels": { "app.kubernetes.io/name": "stanchion" } }, "template": pod },
    });
    // As with kubectl's own apply, which stores a copy of everything in an annotation.
    for object in [&user, &secret, &deployment] {
        let mut applied = object.clone();
        let copy = json!(object.to_string());
        applied["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = copy;
        cluster.apply(&applied.to_string(), &namespace).await;
    }
    let scratch = Scratch::new("stanchion-report-").unwrap();
    let file = scratch.path().join("report.zip");
    let name = file.to_str().unwrap();
    let words = [
        "report",
        name,
        "-n",
        &namespace,
        "--operator-namespace",
        &namespace,
    ];
    let output = run(&cluster.kubeconfig_path(), &words).await;
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    for part in [
        "versions.json",
        "doctor.json",
        "status.json",
        "objects.json",
        "operator/deployments.json",
    ] {
        assert!(said.contains(part), "{said}");
    }
    let unpacked = unpack(&std::fs::read(&file).unwrap());
    assert!(
        unpacked.contains("alice") && unpacked.contains("STANCHION_POSTGRES_URL"),
        "{unpacked}"
    );
    assert!(!unpacked.contains(&canary), "{unpacked}");

    // An existing file is not overwritten.
    let (line, code) = failure(&run(&cluster.kubeconfig_path(), &words).await);
    assert!(line.contains(name) && code == Some(1), "{line}");
}

/// All files in a ZIP file, concatenated.
fn unpack(zip: &[u8]) -> String {
    let number = |at: usize, length: usize| {
        zip[at..at + length]
            .iter()
            .rev()
            .fold(0, |sum, byte| sum * 256 + usize::from(*byte))
    };
    let (mut at, mut all) = (0, String::new());
    while &zip[at..at + 4] == b"PK\x03\x04" {
        let packed = number(at + 18, 4);
        let start = at + 30 + number(at + 26, 2) + number(at + 28, 2);
        let mut reader = flate2::read::DeflateDecoder::new(&zip[start..start + packed]);
        std::io::Read::read_to_string(&mut reader, &mut all).unwrap();
        at = start + packed;
    }
    all
}
