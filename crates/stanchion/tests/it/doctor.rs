//! `stanchion doctor`, with a person's own kubeconfig and permissions.

use std::process::Output;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use stanchion_testkit::cluster::{Cluster, Grant, rule};
use stanchion_testkit::postgres::{ADMIN, ADMIN_PASSWORD, Postgres, any};
use stanchion_testkit::s3::S3;
use stanchion_testkit::scratch::Scratch;
use stanchion_testkit::{port, wait};

use crate::DEADLINE;
use crate::operator::{Operator, stdout, text};
use crate::user_commands::run;

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
        output.status.success() && said.starts_with("ok (") && said.lines().count() == 1,
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

/// Without permission to read Secrets, the result says so.
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
    assert!(said.contains("you may not read it"), "{said}");
}
