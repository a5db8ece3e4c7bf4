//! Built-in workloads: apply, diff, roll out, patch, delete.

use super::{DEPLOYMENT, Kubectl, holds};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workloads_are_applied_rolled_and_described() {
    let Some(kubectl) = Kubectl::start().await else {
        return;
    };
    let file = kubectl.file("web.yaml", DEPLOYMENT);
    holds(
        &kubectl.run(&format!("apply -f {file}")).await,
        &["deployment.apps/web created"],
    );
    holds(
        &kubectl.run(&format!("apply -f {file}")).await,
        &["deployment.apps/web unchanged"],
    );
    kubectl.run("rollout status deployment/web --timeout=30s").await;
    holds(
        &kubectl.run("get deployments").await,
        &["NAME", "READY", "UP-TO-DATE", "web", "2/2"],
    );
    holds(
        &kubectl.run("get pods -o wide").await,
        &["web-", "1/1", "Running", "simulated"],
    );
    holds(
        &kubectl.run("get all").await,
        &[
            "pod/web-",
            "deployment.apps/web",
            "replicaset.apps/web-",
            "service/kubernetes",
        ],
    );

    let changed = kubectl.file("web2.yaml", &DEPLOYMENT.replace("web:1", "web:2"));
    assert_eq!(kubectl.run(&format!("diff -f {file}")).await, "", "no difference");
    holds(
        &kubectl.code(&format!("diff -f {changed}"), 1).await,
        &["-      - image: web:1", "+      - image: web:2"],
    );
    holds(
        &kubectl
            .code(&format!("diff --server-side --force-conflicts -f {changed}"), 1)
            .await,
        &["-      - image: web:1", "+      - image: web:2"],
    );
    holds(
        &kubectl.run(&format!("apply -f {changed}")).await,
        &["configured"],
    );
    kubectl.run("rollout status deployment/web --timeout=30s").await;
    kubectl
        .run("wait --for=condition=Available deployment/web --timeout=30s")
        .await;
    holds(&kubectl.run("rollout history deployment/web").await, &["1", "2"]);
    holds(
        &kubectl.run("describe deployment web").await,
        &["RollingUpdate", "web:2", "Available", "NewReplicaSet"],
    );
    holds(
        &kubectl.run("scale deployment/web --replicas=1").await,
        &["scaled"],
    );
    kubectl.run("set image deployment/web web=web:3").await;
    holds(&kubectl.run("patch deployment web --type=json -p [{\"op\":\"replace\",\"path\":\"/spec/replicas\",\"value\":0}]").await, &["patched"]);
    let strategic = "patch deployment web -p {\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"web\",\"image\":\"web:4\"}]}}}}";
    holds(&kubectl.run(strategic).await, &["patched"]);
    holds(
        &kubectl
            .run("get deployment web -o jsonpath={.spec.template.spec.containers[0]}")
            .await,
        &["web:4", "containerPort"],
    );
    kubectl.run("annotate deployment web note=x").await;
    kubectl.run("label deployment web tier=front").await;
    holds(
        &kubectl.run("get deployments -l tier=front -o name").await,
        &["deployment.apps/web"],
    );
    holds(
        &kubectl.run("delete deployment web --wait --timeout=30s").await,
        &["deleted"],
    );
    holds(&kubectl.fail("get deployment web").await, &["NotFound"]);
}
