//! Commands that only read, and commands that create a single object.

use super::{Kubectl, holds};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_small_commands_work() {
    let Some(kubectl) = Kubectl::start().await else {
        return;
    };
    holds(&kubectl.run("version").await, &["Server Version: v1."]);
    holds(&kubectl.run("cluster-info").await, &["Kubernetes control plane"]);
    holds(
        &kubectl.run("api-resources").await,
        &["deployments", "secrets", "customresourcedefinitions"],
    );
    holds(&kubectl.run("api-versions").await, &["apps/v1", "batch/v1"]);
    holds(
        &kubectl.run("explain deployment.spec.strategy").await,
        &["rollingUpdate", "FIELDS"],
    );
    holds(&kubectl.run("create namespace demo").await, &["created"]);
    kubectl
        .run("create secret generic s --from-literal=a=b -n demo")
        .await;
    holds(
        &kubectl.run("get secret s -n demo -o jsonpath={.data.a}").await,
        &["Yg=="],
    );
    kubectl.run("create configmap c --from-literal=a=b -n demo").await;
    holds(&kubectl.run("describe configmap c -n demo").await, &["a:", "b"]);
    kubectl.run("create serviceaccount robot -n demo").await;
    holds(&kubectl.run("create token robot -n demo").await, &["."]);
    kubectl
        .run("create role reader --verb=get,list --resource=configmaps -n demo")
        .await;
    kubectl
        .run("create rolebinding reader --role=reader --serviceaccount=demo:robot -n demo")
        .await;
    holds(
        &kubectl
            .run("auth can-i get configmaps -n demo --as=system:serviceaccount:demo:robot")
            .await,
        &["yes"],
    );
    holds(
        &kubectl
            .code(
                "auth can-i delete configmaps -n demo --as=system:serviceaccount:demo:robot",
                1,
            )
            .await,
        &["no"],
    );
    holds(&kubectl.run("auth whoami").await, &["admin", "system:masters"]);
    holds(&kubectl.run("auth can-i --list").await, &["*.*"]);
    kubectl.run("run one --image=one -n demo").await;
    kubectl
        .run("wait --for=condition=Ready pod/one -n demo --timeout=30s")
        .await;
    holds(&kubectl.run("logs one -n demo").await, &["no container ran"]);
    holds(
        &kubectl.fail("exec one -n demo -- true").await,
        &["simulates workloads and has no exec"],
    );
    kubectl.run("create job once --image=once -n demo").await;
    kubectl
        .run("wait --for=condition=Complete job/once -n demo --timeout=30s")
        .await;
    kubectl.run("expose pod one --port=80 -n demo").await;
    holds(
        &kubectl.run("get service one -n demo").await,
        &["ClusterIP", "80/TCP"],
    );
    kubectl
        .run("create deployment d --image=d --replicas=2 -n demo")
        .await;
    kubectl.run("delete namespace demo --timeout=60s").await;
}
