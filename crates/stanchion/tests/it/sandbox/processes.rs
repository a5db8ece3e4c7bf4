//! `--run`: an image that is mapped to a local command.

use std::fs;
use std::path::Path;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{LogParams, PostParams};
use kube::runtime::wait::{Condition as _, conditions};
use serde_json::json;
use stanchion_testkit::process::Signal;
use stanchion_testkit::wait;

use super::client;
use super::directory::{Place, processes_of};
use crate::DEADLINE;
use crate::operator::failure;

#[tokio::test]
async fn an_image_can_be_a_command_of_this_machine() {
    let place = Place::new();
    let (kubeconfig, words) = (place.file("kubeconfig"), place.temporary().join("words"));
    fs::write(&words, "said by a process\n").unwrap();
    let words = words.display().to_string();
    let sandbox = place.start(&[
        "--api-only",
        "--kubeconfig",
        &kubeconfig,
        "--run",
        "local/tail=tail -f",
    ]);
    wait::eventually(DEADLINE, "the kubeconfig", async || {
        Path::new(&kubeconfig).exists()
    })
    .await;
    let pods: Api<Pod> = Api::default_namespaced(client(&kubeconfig).await);
    let teller = json!({
        "metadata": { "name": "teller" },
        "spec": { "containers": [{ "name": "teller", "image": "local/tail:1", "args": [words] }] },
    });
    let teller = serde_json::from_value(teller).unwrap();
    pods.create(&PostParams::default(), &teller).await.unwrap();
    wait::until(&pods, "teller", DEADLINE, |pod| {
        conditions::is_pod_running().matches_object(Some(pod))
    })
    .await;
    wait::eventually(DEADLINE, "what it says", async || {
        let said = pods.logs("teller", &LogParams::default()).await;
        match said.map_err(|error| error.to_string())? {
            said if said == "said by a process\n" => Ok(()),
            said => Err(said),
        }
    })
    .await;
    assert_ne!(processes_of(&place.temporary()), Vec::<String>::new());
    // Even when it is killed, it ends its processes.
    sandbox.end(Signal::Kill).await;
    fs::remove_file(words).unwrap();
    place.is_clean().await;
}

#[tokio::test]
async fn a_command_that_is_none_is_refused() {
    let place = Place::new();
    for wrong in ["local/tail", "=tail", "local/tail= "] {
        let (line, code) = failure(&place.run(&["--api-only", "--run", wrong]).await);
        assert!(line.contains("IMAGE=COMMAND"), "{line}");
        assert_eq!(code, Some(2));
    }
    place.is_clean().await;
}
