//! The API server alone, and what it says of what cannot be.

use std::fs;
use std::path::Path;

use stanchion_testkit::process::Signal;
use stanchion_testkit::wait;
use tokio::net::TcpListener;

use super::place::Place;
use super::{ask, has};
use crate::DEADLINE;
use crate::operator::failure;

#[tokio::test]
async fn the_api_alone_answers_kubectl_until_sigterm() {
    if !has(&["kubectl"]) {
        return;
    }
    let place = Place::new();
    let kubeconfig = place.file("kubeconfig");
    let sandbox = place.start(&["--api-only", "--kubeconfig", &kubeconfig]);
    wait::eventually(DEADLINE, "the kubeconfig", async || {
        Path::new(&kubeconfig).exists()
    })
    .await;
    // It is written when the server answers: the first question counts.
    let names = ask(&kubeconfig, "get namespaces -o name");
    assert!(names.contains("namespace/default"), "{names}");
    let kinds = ask(&kubeconfig, "api-resources -o name");
    assert!(!kinds.contains("db.example.com"), "nothing is installed: {kinds}");
    assert_eq!(sandbox.end(Signal::Term).await, Some(0));
    assert!(!Path::new(&kubeconfig).exists());
    place.is_clean().await;
}

/// A kubeconfig that is there already is written over.
#[tokio::test]
async fn the_api_alone_keeps_its_port_and_its_objects() {
    if !has(&["kubectl"]) {
        return;
    }
    let place = Place::new();
    let (data, kubeconfig) = (place.file("data"), place.file("kubeconfig"));
    let port = place.port().await;
    let arguments = [
        "--api-only",
        "--port",
        &port,
        "--data",
        &data,
        "--kubeconfig",
        &kubeconfig,
    ];
    fs::write(&kubeconfig, "stale").unwrap();
    let written = async || {
        wait::eventually(DEADLINE, "the kubeconfig", async || {
            let text = fs::read_to_string(&kubeconfig).unwrap_or_default();
            text.contains(&format!("https://127.0.0.1:{port}"))
        })
        .await;
    };

    let sandbox = place.start(&arguments);
    written().await;
    ask(&kubeconfig, "create configmap kept");
    let uid = ask(&kubeconfig, "get configmap kept -o jsonpath={.metadata.uid}");
    assert_eq!(sandbox.end(Signal::Term).await, Some(0));
    assert!(!Path::new(&kubeconfig).exists());

    let sandbox = place.start(&arguments);
    written().await;
    let again = ask(&kubeconfig, "get configmap kept -o jsonpath={.metadata.uid}");
    assert_eq!(again, uid);
    assert_eq!(sandbox.end(Signal::Term).await, Some(0));
    place.is_clean().await;
}

#[tokio::test]
async fn what_cannot_be_is_said_in_one_line() {
    let place = Place::new();
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let (line, code) = failure(&place.run(&["--api-only", "--port", &port]).await);
    assert!(line.contains(&port), "{line}");
    assert_eq!(code, Some(1));
    let (line, code) = failure(&place.run(&["--api-only", "--once"]).await);
    assert!(line.contains("--api-only") && line.contains("--once"), "{line}");
    assert_eq!(code, Some(2));
    place.is_clean().await;
}
