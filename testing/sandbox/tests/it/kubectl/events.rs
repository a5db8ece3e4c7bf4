//! `kubectl events`, and the events in `describe`.

use super::{DEPLOYMENT, Kubectl, holds};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_are_listed_selected_and_shown_with_their_object() {
    let Some(kubectl) = Kubectl::start().await else {
        return;
    };
    let file = kubectl.file("web.yaml", DEPLOYMENT);
    kubectl.run(&format!("apply -f {file}")).await;
    kubectl.run("rollout status deployment/web --timeout=30s").await;
    kubectl.run("run broken --image=no-such-image").await;
    // The last event comes after the image pull failed: wait until the pod reports it.
    let reason = "jsonpath={.status.containerStatuses[0].state.waiting.reason}";
    kubectl
        .run(&format!(
            "wait pod/broken --for={reason}=ImagePullBackOff --timeout=30s"
        ))
        .await;
    holds(
        &kubectl.run("events").await,
        &[
            "LAST SEEN",
            "Normal",
            "Scheduled",
            "ScalingReplicaSet",
            "Deployment/web",
        ],
    );
    let of_one = kubectl.run("events --for deployment/web").await;
    holds(&of_one, &["ScalingReplicaSet", "Scaled up replica set"]);
    assert!(!of_one.contains("Pod/"), "only the Deployment's: {of_one}");
    let warnings = kubectl.run("events --types=Warning").await;
    assert!(!warnings.contains("Normal"), "only warnings: {warnings}");
    holds(
        &kubectl
            .run("get events --field-selector reason=Scheduled,involvedObject.name=broken")
            .await,
        &["pod/broken", "Successfully assigned"],
    );
    holds(
        &kubectl.run("get events.events.k8s.io -o name").await,
        &["event.events.k8s.io/web."],
    );
    holds(
        &kubectl.run("describe deployment web").await,
        &["Events:", "ScalingReplicaSet"],
    );
    kubectl
        .run("delete deployment,pod --all --wait --timeout=30s")
        .await;
    kubectl.run("wait --for=delete pod/broken --timeout=30s").await;
}
