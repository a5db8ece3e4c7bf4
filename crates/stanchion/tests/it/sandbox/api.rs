//! The API server alone, and its error messages.

use std::fs;
use std::path::Path;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::PostParams;
use kube::{Api, ResourceExt as _};
use stanchion_testkit::process::Signal;
use stanchion_testkit::wait;
use tokio::net::TcpListener;

use super::client;
use super::directory::Place;
use crate::DEADLINE;
use crate::operator::failure;

#[tokio::test]
async fn the_api_alone_answers_until_sigterm() {
    let place = Place::new();
    let kubeconfig = place.file("kubeconfig");
    let sandbox = place.start(&["--api-only", "--kubeconfig", &kubeconfig]);
    wait::eventually(DEADLINE, "the kubeconfig", async || {
        Path::new(&kubeconfig).exists()
    })
    .await;
    // It is written when the server is ready: the first request must succeed.
    let client = client(&kubeconfig).await;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    assert!(namespaces.get_opt("default").await.unwrap().is_some());
    let groups = client.list_api_groups().await.unwrap().groups;
    assert!(groups.iter().any(|group| group.name == "apps"), "{groups:?}");
    let ours = groups.iter().any(|group| group.name == "db.example.com");
    assert!(!ours, "nothing is installed: {groups:?}");
    assert_eq!(sandbox.end(Signal::Term).await, Some(0));
    assert!(!Path::new(&kubeconfig).exists());
    place.is_clean().await;
}

/// An existing kubeconfig is overwritten.
#[tokio::test]
async fn the_api_alone_keeps_its_port_and_its_objects() {
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
    let mut kept = ConfigMap::default();
    kept.metadata.name = Some("kept".to_owned());
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&kubeconfig).await);
    let uid = maps.create(&PostParams::default(), &kept).await.unwrap().uid();
    assert_eq!(sandbox.end(Signal::Term).await, Some(0));
    assert!(!Path::new(&kubeconfig).exists());

    let sandbox = place.start(&arguments);
    written().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&kubeconfig).await);
    assert_eq!(maps.get("kept").await.unwrap().uid(), uid);
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
