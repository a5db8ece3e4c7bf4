//! Start, end, and errors at the start.

use std::path::{Path, PathBuf};

use stanchion_testkit::cluster::Cluster;
use stanchion_testkit::port;
use stanchion_testkit::process::Signal;
use stanchion_testkit::scratch::Scratch;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::operator::{Operator, command, failure};

/// A kubeconfig for a server that is not a cluster.
fn kubeconfig(folder: &Path, port: u16) -> PathBuf {
    let content = serde_json::json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{ "name": "c", "context": { "cluster": "c", "user": "u" } }],
        "clusters": [{ "name": "c", "cluster": { "server": format!("http://127.0.0.1:{port}") } }],
        "users": [{ "name": "u", "user": {} }],
    });
    let file = folder.join("kubeconfig");
    std::fs::write(&file, content.to_string()).unwrap();
    file
}

/// The error of `stanchion run` on such a cluster, and its exit code.
async fn refused(port: u16) -> (String, Option<i32>) {
    let scratch = Scratch::new("stanchion-start-").unwrap();
    let mut run = command([
        "run",
        "--health-addr",
        "127.0.0.1:0",
        "--metrics-addr",
        "127.0.0.1:0",
    ]);
    run.env("KUBECONFIG", kubeconfig(scratch.path(), port));
    let output = tokio::task::spawn_blocking(move || run.output().unwrap());
    failure(&output.await.unwrap())
}

#[tokio::test]
async fn a_cluster_that_is_not_there() {
    let port = port::free();
    let (line, code) = refused(port).await;
    assert!(line.contains(&format!("http://127.0.0.1:{port}")), "{line}");
    assert!(line.contains("Connection refused"), "{line}");
    assert_eq!(code, Some(1));
}

#[tokio::test]
async fn a_cluster_that_does_not_answer() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (line, code) = refused(silent.local_addr().unwrap().port()).await;
    assert!(line.contains("no answer within"), "{line}");
    assert_eq!(code, Some(1));
}

/// Answers like an API server without any of our kinds.
async fn serve_nothing(listener: TcpListener) {
    loop {
        let (mut connection, _) = listener.accept().await.unwrap();
        tokio::spawn(async move {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = connection.read(&mut buffer).await {
                let (status, body) = if buffer[..length].starts_with(b"GET /version") {
                    let version = r#"{"major":"1","minor":"36","gitVersion":"v1.36.0","gitCommit":"","gitTreeState":"","buildDate":"","goVersion":"","compiler":"","platform":""}"#;
                    ("200 OK", version)
                } else {
                    ("404 Not Found", "404 page not found\n")
                };
                let answer = format!(
                    "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                    body.len()
                );
                if connection.write_all(answer.as_bytes()).await.is_err() {
                    return;
                }
            }
        });
    }
}

#[tokio::test]
async fn a_cluster_without_the_definitions() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = tokio::spawn(serve_nothing(listener));
    let (line, code) = refused(port).await;
    server.abort();
    assert!(
        line.contains("postgresinstances.db.example.com/v1alpha1"),
        "{line}"
    );
    assert!(line.contains("stanchion crds | kubectl apply -f -"), "{line}");
    assert_eq!(code, Some(1));
}

#[tokio::test]
async fn an_address_that_is_taken() {
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = taken.local_addr().unwrap().to_string();
    let output = command(["run", "--health-addr", &addr]).output().unwrap();
    let (line, code) = failure(&output);
    assert!(line.contains(&addr) && line.contains("health"), "{line}");
    assert_eq!(code, Some(1));
}

#[tokio::test]
async fn a_signal_ends_it_in_peace() {
    let cluster = Cluster::shared().await;
    cluster.install_crds(stanchion_api::crds()).await;
    let namespace = cluster.namespace("start").await;
    for signal in [Signal::Term, Signal::Int] {
        let arguments = [
            "--namespace",
            &namespace,
            "--operator-namespace",
            &namespace,
            "--no-webhooks",
        ];
        let mut operator = Operator::start(&cluster.kubeconfig_path(), &arguments);
        operator.ready().await;
        assert_eq!(operator.get("health", "/livez").await.unwrap().0, 200);
        let (_, metrics) = operator.get("metrics", "/metrics").await.unwrap();
        assert!(
            metrics.contains("controller_runtime_reconcile_total"),
            "{metrics}"
        );
        operator.signal(signal);
        assert_eq!(operator.ended().await, Some(0), "{}", operator.log());
    }
}
