//! Rollback and restart of Deployments, and orphaned pods.

use super::{DEPLOYMENT, Kubectl, holds};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rollouts_are_undone_and_restarted() {
    let Some(kubectl) = Kubectl::start().await else {
        return;
    };
    let rolled = "rollout status deployment/web --timeout=30s";
    let image = "get deployment web -o jsonpath={.spec.template.spec.containers[0].image}";
    let revision =
        "get deployment web -o jsonpath={.metadata.annotations.deployment\\.kubernetes\\.io/revision}";
    let file = kubectl.file("web.yaml", DEPLOYMENT);
    kubectl.run(&format!("apply -f {file}")).await;
    kubectl.run(rolled).await;
    kubectl.run("set image deployment/web web=web:2").await;
    kubectl.run(rolled).await;
    holds(
        &kubectl.run("rollout history deployment/web --revision=2").await,
        &["revision #2", "web:2"],
    );
    holds(
        &kubectl.run("rollout undo deployment/web").await,
        &["rolled back"],
    );
    kubectl.run(rolled).await;
    assert_eq!(kubectl.run(image).await, "web:1");
    assert_eq!(kubectl.run(revision).await, "3", "what comes back is new");
    holds(
        &kubectl.run("rollout restart deployment/web").await,
        &["restarted"],
    );
    kubectl.run(rolled).await;
    assert_eq!(kubectl.run(revision).await, "4");
    holds(&kubectl.run("rollout pause deployment/web").await, &["paused"]);
    holds(&kubectl.run("rollout resume deployment/web").await, &["resumed"]);
    holds(
        &kubectl
            .fail("scale deployment web --replicas=1 --current-replicas=5")
            .await,
        &["Expected replicas to be 5, was 2"],
    );
    kubectl.run("scale deployment web --replicas=1").await;
    kubectl
        .run("wait --for=jsonpath={.status.replicas}=1 deployment/web --timeout=30s")
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_deployment_leaves_behind_is_taken_over() {
    let Some(kubectl) = Kubectl::start().await else {
        return;
    };
    let file = kubectl.file("web.yaml", DEPLOYMENT);
    let rolled = "rollout status deployment/web --timeout=30s";
    kubectl.run(&format!("apply -f {file}")).await;
    kubectl.run(rolled).await;
    kubectl.run("delete deployment web --cascade=orphan").await;
    let sets = kubectl.run("get replicasets -l app=web -o name").await;
    holds(&sets, &["replicaset.apps/web-"]);
    assert_eq!(
        kubectl
            .run("get replicasets -l app=web -o jsonpath={.items[*].metadata.ownerReferences}")
            .await,
        ""
    );
    kubectl.run(&format!("apply -f {file}")).await;
    kubectl.run(rolled).await;
    assert_eq!(
        kubectl.run("get replicasets -l app=web -o name").await,
        sets,
        "the same one"
    );
    kubectl
        .run("delete deployment web --cascade=foreground --timeout=30s")
        .await;
    assert_eq!(kubectl.run("get replicasets,pods -l app=web -o name").await, "");
}
