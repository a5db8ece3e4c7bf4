//! Workloads whose image is mapped to a local command: they run as processes, with their environment.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Event, Pod, Secret};
use kube::api::{Api, DeleteParams, ListParams, LogParams, PostParams};
use serde_json::{Value, json};
use stanchion_sandbox::Sandbox;

/// Repeats until there is a result.
async fn eventually<T, F: Future<Output = Option<T>>>(what: &str, mut ask: impl FnMut() -> F) -> T {
    let answer = async {
        loop {
            match ask().await {
                Some(answer) => return answer,
                None => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    let deadline = Duration::from_mins(1);
    tokio::time::timeout(deadline, answer)
        .await
        .unwrap_or_else(|_| panic!("{what} did not happen"))
}

fn deployment(image: &str) -> Deployment {
    let from_secret = json!({"secretKeyRef": {"name": "words", "key": "greeting"}});
    let name = json!({"fieldRef": {"fieldPath": "metadata.name"}});
    let object = json!({"metadata": {"name": "web"}, "spec": {
        "replicas": 1, "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{
            "name": "web", "image": image,
            "args": ["echo \"$GREETING from $POD\"; exec sleep 600"],
            "env": [{"name": "GREETING", "valueFrom": from_secret}, {"name": "POD", "valueFrom": name}],
        }]}},
    }});
    serde_json::from_value(object).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mapped_image_runs_with_its_environment() {
    let sandbox = Sandbox::builder()
        .command("local/shell", &["/bin/sh", "-c"])
        .start()
        .unwrap();
    let client = sandbox.client();
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    deployments
        .create(&PostParams::default(), &deployment("local/shell:1"))
        .await
        .unwrap();

    // Without its Secret it does not start, and reports why.
    let name = eventually("a pod that says what it misses", || async {
        let pod = pods.list(&ListParams::default()).await.unwrap().items.pop()?;
        let why = pod.status?.message?;
        why.contains("secret \"words\" not found")
            .then_some(pod.metadata.name?)
    })
    .await;
    let words = json!({"metadata": {"name": "words"}, "stringData": {"greeting": "hello"}});
    let words: Secret = serde_json::from_value(words).unwrap();
    let secrets: Api<Secret> = Api::default_namespaced(client.clone());
    secrets.create(&PostParams::default(), &words).await.unwrap();

    eventually("a ready Deployment", || async {
        let status = deployments.get("web").await.unwrap().status?;
        (status.ready_replicas == Some(1)).then_some(())
    })
    .await;
    eventually("a line in the log", || async {
        let log = pods.logs(&name, &LogParams::default()).await.unwrap();
        (log == format!("hello from {name}\n")).then_some(())
    })
    .await;

    let events: Api<Event> = Api::default_namespaced(client.clone());
    let reported = events.list(&ListParams::default()).await.unwrap();
    let reported: Vec<String> = reported
        .items
        .into_iter()
        .filter_map(|event| event.reason)
        .collect();
    for reason in ["ScalingReplicaSet", "SuccessfulCreate", "Scheduled"] {
        assert!(
            reported.iter().any(|known| known == reason),
            "no {reason} in {reported:?}"
        );
    }

    deployments.delete("web", &DeleteParams::default()).await.unwrap();
    eventually("the end of the pod", || async {
        let left = pods.list(&ListParams::default()).await.unwrap().items;
        left.is_empty().then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_exit_of_a_process_is_that_of_its_job() {
    let sandbox = Sandbox::builder()
        .command("local/shell", &["/bin/sh", "-c"])
        .start()
        .unwrap();
    let pods: Api<Pod> = Api::default_namespaced(sandbox.client());
    for (name, line, phase) in [("good", "exit 0", "Succeeded"), ("bad", "exit 3", "Failed")] {
        let pod: Value = json!({"metadata": {"name": name}, "spec": {
            "restartPolicy": "Never", "containers": [{"name": "c", "image": "local/shell", "args": [line]}],
        }});
        let pod = serde_json::from_value(pod).unwrap();
        pods.create(&PostParams::default(), &pod).await.unwrap();
        eventually(phase, || async {
            let status = pods.get(name).await.unwrap().status?;
            (status.phase.as_deref() == Some(phase)).then_some(())
        })
        .await;
    }
}
