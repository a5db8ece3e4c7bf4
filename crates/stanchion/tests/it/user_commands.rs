//! The commands for users: `status`, `doctor`, `report`; with their own kubeconfig and permissions.

use std::path::Path;
use std::process::Output;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use stanchion_testkit::cluster::{Cluster, Grant, rule};
use stanchion_testkit::postgres::{ADMIN, ADMIN_PASSWORD, Postgres, any};
use stanchion_testkit::process::Launch;
use stanchion_testkit::s3::S3;
use stanchion_testkit::scratch::Scratch;
use stanchion_testkit::{port, wait};

use crate::DEADLINE;
use crate::operator::{BINARY, Operator, command, failure, stdout, text};

/// Runs a command on the cluster of this kubeconfig.
async fn run(kubeconfig: &Path, words: &[&str]) -> Output {
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
        shown.contains("not shown: supabaseprojects: you have no right to list them"),
        "{shown}"
    );
    let tree = text(
        &run(somebody.kubeconfig_path(), &status(&["postgresuser/alice"]))
            .await
            .stdout,
    );
    assert!(
        tree.contains("not shown") && tree.contains("events: you have no right"),
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

/// The ids of the findings.
fn found(output: &Output) -> Vec<String> {
    let said: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)));
    let findings = said["findings"].as_array().unwrap().iter();
    findings
        .map(|finding| finding["check"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn doctor_is_content_with_the_manifest_and_finds_what_is_broken() {
    let cluster = Cluster::start().await;
    let admin = cluster.kubeconfig_path();
    let version = concat!("example.com/stanchion:", env!("CARGO_PKG_VERSION"));
    let manifest = stdout(["manifest", "--image", version]);
    cluster.apply(&manifest, "default").await;
    let deployments: Api<Deployment> = Api::namespaced(cluster.client().await, "stanchion-system");
    wait::until(&deployments, "stanchion", DEADLINE, |it: &Deployment| {
        let status = it.status.as_ref();
        status.and_then(|status| status.available_replicas) == Some(2)
    })
    .await;
    // No container runs here, so the program leads in place of its pods.
    let account = cluster.log_in("stanchion-system", "stanchion").await;
    let port = port::free();
    let listen = format!("--webhook-addr=127.0.0.1:{port}");
    let url = format!("--webhook-url=https://127.0.0.1:{port}");
    let words = [
        "--leader-elect",
        "--operator-namespace",
        "stanchion-system",
        &listen,
        &url,
    ];
    let operator = Operator::start(account.kubeconfig_path(), &words);
    operator.ready().await;
    operator
        .wait_for("the webhooks to be registered", async || {
            operator.log().contains("webhooks registered")
        })
        .await;
    let output = run(&admin, &["doctor", "-A"]).await;
    let said = text(&output.stdout);
    assert!(
        output.status.success() && said.lines().last().unwrap().starts_with("ok ("),
        "{said}"
    );
    let output = run(&admin, &["doctor", "-A", "-o", "json"]).await;
    assert_eq!(found(&output), [] as [&str; 0], "{}", text(&output.stdout));

    // Its metrics, through a pipe.
    let (_, metrics) = operator.get("metrics", "/metrics").await.unwrap();
    let scratch = Scratch::new("stanchion-metrics-").unwrap();
    let file = scratch.path().join("metrics");
    std::fs::write(&file, metrics).unwrap();
    let output = run(&admin, &["doctor", "-A", "--metrics", file.to_str().unwrap()]).await;
    assert!(
        !text(&output.stdout).contains("queue-grows"),
        "{}",
        text(&output.stdout)
    );

    // Faults that can be planted while the operator runs.
    let roles: Api<ClusterRole> = Api::all(cluster.client().await);
    let name = "stanchion-system:stanchion";
    let mut role = roles.get(name).await.unwrap();
    role.rules.as_mut().unwrap().remove(0);
    roles.replace(name, &PostParams::default(), &role).await.unwrap();
    let none = json!({ "spec": { "replicas": 0 } });
    deployments
        .patch("stanchion", &PatchParams::default(), &Patch::Merge(&none))
        .await
        .unwrap();
    let mut left = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": { "name": "stanchion-elsewhere" },
        "webhooks": [{
            "name": "gone.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore",
            "clientConfig": { "service": { "namespace": "elsewhere", "name": "stanchion" } },
            "rules": [{ "apiGroups": ["db.example.com"], "apiVersions": ["*"], "resources": ["postgresusers"], "operations": ["CREATE"] }],
        }],
    });
    left["webhooks"][0]["namespaceSelector"] = json!({ "matchLabels": { "none": "none" } });
    cluster.apply(&left.to_string(), "default").await;
    let output = run(&admin, &["doctor", "-A", "-o", "json"]).await;
    let ids = found(&output);
    for id in [
        "rbac-missing",
        "operator-unavailable",
        "webhook-left-behind",
        "webhook-service",
    ] {
        assert!(ids.iter().any(|found| found == id), "{id} is not in {ids:?}");
    }
    assert_eq!(output.status.code(), Some(1));
    operator.stop().await;

    // A user without permissions gets a message about it, and not that everything is well.
    let namespace = cluster.namespace("nobody").await;
    let nobody = cluster.user(&namespace, "nobody", &[]).await;
    let said = text(
        &run(nobody.kubeconfig_path(), &["doctor", "-n", &namespace])
            .await
            .stdout,
    );
    assert!(
        said.contains("skipped") && said.contains("rbac-missing"),
        "{said}"
    );
}

/// It dials with the Secrets of the person, and prints nothing of them.
#[tokio::test]
async fn doctor_dials_what_the_objects_name() {
    let canary = ["cAn", "ArY", "-dial"].concat();
    let cluster = Cluster::shared().await;
    cluster.install_crds(stanchion_api::crds()).await;
    let namespace = cluster.namespace("dial").await;
    let (server, s3) = (Postgres::shared(any()).await, S3::start().await);
    let secret = |name: &str, values: Value| json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name }, "stringData": values });
    let database = |password: &str| {
        json!({
            "host": "127.0.0.1", "port": server.port().to_string(), "database": "postgres",
            "username": ADMIN, "password": password,
        })
    };
    let files = |key: &str| {
        json!({
            "endpoint": s3.endpoint(), "region": S3::REGION, "bucket": s3.bucket(),
            "accessKeyId": s3.access_key(), "secretAccessKey": key,
        })
    };
    let project = |name: &str, database: &str, files: &str| {
        json!({
            "apiVersion": "supabase.strrl.dev/v1alpha1", "kind": "SupabaseProject", "metadata": { "name": name },
            "spec": {
                "projectId": name, "database": { "secretRef": { "name": database }, "sslMode": "disable" },
                "storage": { "secretRef": { "name": files } },
            },
        })
    };
    let policy = |name: &str, secret: &str| {
        json!({
            "apiVersion": "pgroles.io/v1alpha1", "kind": "PostgresPolicy", "metadata": { "name": name },
            "spec": { "connection": { "secretRef": { "name": secret } }, "roles": [] },
        })
    };
    let instance = |name: &str, port: u16| {
        json!({
            "apiVersion": "db.example.com/v1alpha1", "kind": "PostgresInstance", "metadata": { "name": name },
            "spec": {
                "host": "127.0.0.1", "port": port, "database": "postgres", "tls": { "mode": "disable" },
                "adminSecretRef": { "name": "right-db" },
            },
        })
    };
    for object in [
        secret("right-db", database(ADMIN_PASSWORD)),
        secret("wrong-db", database(&canary)),
        secret("right-files", files(s3.secret_key())),
        secret("wrong-files", files(&canary)),
        secret("url", json!({ "DATABASE_URL": server.url("postgres") })),
        project("right", "right-db", "right-files"),
        project("wrong", "wrong-db", "wrong-files"),
        project("without", "no-such-secret", "right-files"),
        policy("right", "url"),
        instance("right", server.port()),
        instance("away", port::free()),
    ] {
        cluster.apply(&object.to_string(), &namespace).await;
    }
    let words = ["doctor", "-n", &namespace, "--connect", "-o", "json"];
    let output = run(&cluster.kubeconfig_path(), &words).await;
    let said = text(&output.stdout);
    let json: Value = serde_json::from_str(&said).unwrap();
    let about: Vec<(String, String)> = json["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| {
            let text = |field: &str| finding[field].as_str().unwrap().to_owned();
            (text("check"), text("subject"))
        })
        .filter(|(check, _)| check.starts_with("connect-"))
        .collect();
    let expected = [
        ("connect-bucket", format!("SupabaseProject {namespace}/wrong")),
        ("connect-database", format!("PostgresInstance {namespace}/away")),
        ("connect-database", format!("SupabaseProject {namespace}/wrong")),
        ("connect-secret", format!("SupabaseProject {namespace}/without")),
    ];
    let expected: Vec<(String, String)> = expected
        .into_iter()
        .map(|(check, subject)| (check.to_owned(), subject))
        .collect();
    assert_eq!(about, expected, "{said}");
    assert!(!said.contains(&canary) && !said.contains(ADMIN_PASSWORD) && !said.contains(s3.secret_key()));

    without_secrets(cluster, &namespace, &words).await;
}

/// Somebody who may read the objects and not the Secrets is told so.
async fn without_secrets(cluster: &Cluster, namespace: &str, words: &[&str]) {
    let groups = ["db.example.com", "supabase.strrl.dev", "pgroles.io"];
    let resources = [
        "postgresinstances",
        "postgresusers",
        "supabaseprojects",
        "postgrespolicies",
        "postgrespolicyplans",
    ];
    let mut rules: Vec<_> = groups
        .iter()
        .map(|group| rule(group, &resources, &["get", "list"]))
        .collect();
    rules.push(rule(
        "k8s.bnerd.com",
        &["gitlabinstances", "gitlabprofiles", "gitlabversionmaps"],
        &["get", "list"],
    ));
    let grants = [Grant::In(namespace.to_owned(), rules)];
    let reader = cluster.user(namespace, "reader", &grants).await;
    let said = text(&run(reader.kubeconfig_path(), words).await.stdout);
    assert!(said.contains("you have no right to read it"), "{said}");
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
