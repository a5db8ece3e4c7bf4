//! kubectl's read commands and output formats.

use super::{Kubectl, holds};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_are_shown_in_every_form() {
    let Some(kubectl) = Kubectl::start().await else {
        return;
    };
    kubectl.run("create configmap b --from-literal=x=1").await;
    kubectl.run("create configmap a --from-literal=x=2").await;
    let columns = "get configmap a -o custom-columns=NAME:.metadata.name,X:.data.x,NONE:.data.none";
    let lines = kubectl.run(columns).await;
    let last: Vec<&str> = lines.lines().last().unwrap().split_whitespace().collect();
    assert_eq!(last, ["a", "2", "<none>"]);
    let template = "get configmap a -o go-template={{.data.x}}";
    assert_eq!(kubectl.run(template).await, "2");
    let sorted = kubectl
        .run("get configmaps a b --sort-by={.data.x} -o name")
        .await;
    assert_eq!(sorted, "configmap/b\nconfigmap/a\n");
    holds(
        &kubectl.run("get configmap a -o yaml").await,
        &["kind: ConfigMap", "x: \"2\""],
    );
    holds(&kubectl.run("get configmap a -o json").await, &["\"x\": \"2\""]);
    holds(
        &kubectl
            .fail("get --raw /api/v1/namespaces/default/configmaps/none")
            .await,
        &["NotFound"],
    );
    holds(
        &kubectl.fail("get nosuch").await,
        &["the server doesn't have a resource type \"nosuch\""],
    );
    kubectl.run("delete configmap none --ignore-not-found").await;

    kubectl.run("create deployment d --image=d --replicas=0").await;
    holds(
        &kubectl.run("get deployment d --subresource=scale").await,
        &["DESIRED", "AVAILABLE", "d"],
    );
    kubectl.run("create service clusterip s --tcp=80:8080").await;
    holds(
        &kubectl.run("describe service s").await,
        &["Selector:", "app=s", "80-8080", "TargetPort:", "8080/TCP"],
    );
    kubectl.run("run one --image=one --env=A=b --port=80").await;
    kubectl
        .run("wait --for=condition=Ready pod/one --timeout=30s")
        .await;
    holds(
        &kubectl.run("describe pod one").await,
        &[
            "Image:",
            "one",
            "Environment:",
            "A:",
            "Ready",
            "True",
            "Scheduled",
        ],
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rights_and_kinds_are_told() {
    let Some(kubectl) = Kubectl::start().await else {
        return;
    };
    kubectl
        .run("create role r --verb=get --resource=pods,deployments.apps/scale --resource-name=one")
        .await;
    kubectl.run("create rolebinding r --role=r --group=team").await;
    holds(
        &kubectl
            .run("auth can-i get pod/one --as=eve --as-group=team")
            .await,
        &["yes"],
    );
    for line in [
        "auth can-i get pod/two --as=eve --as-group=team",
        "auth can-i get pod/one --as=eve",
        "auth can-i list pods --as=eve --as-group=team",
    ] {
        holds(&kubectl.code(line, 1).await, &["no"]);
    }
    holds(
        &kubectl.run("auth can-i --list --as=eve --as-group=team").await,
        &[
            "pods",
            "[one]",
            "deployments.apps/scale",
            "selfsubjectaccessreviews",
            "/healthz",
        ],
    );
    holds(
        &kubectl.fail("get pods --as=eve").await,
        &["Forbidden", "User \"eve\" cannot list resource \"pods\""],
    );
    holds(&kubectl.run("describe role r").await, &["pods", "[one]", "[get]"]);
    holds(
        &kubectl.run("explain deployment.spec.strategy --recursive").await,
        &["rollingUpdate", "maxSurge", "maxUnavailable", "type"],
    );
    kubectl.define_gadgets().await;
    holds(
        &kubectl.run("explain gadget --recursive").await,
        &["spec", "size", "status"],
    );
    let gadget = "apiVersion: example.com/v1\nkind: Gadget\nmetadata: {name: g}\nspec: {size: 3}\n";
    let file = kubectl.file("gadget.yaml", gadget);
    kubectl.run(&format!("apply -f {file}")).await;
    holds(
        &kubectl.run("describe gadget g").await,
        &["Kind:", "Gadget", "Spec:", "Size:", "3", "Events:"],
    );
    holds(
        &kubectl.run("delete gadget --all --dry-run=server").await,
        &["deleted", "(server dry run)"],
    );
    holds(
        &kubectl.run("get gadgets -o name").await,
        &["gadget.example.com/g"],
    );
}
