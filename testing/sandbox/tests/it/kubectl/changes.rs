//! Changes of one object with all of kubectl's commands.

use super::{Kubectl, holds};

const CONFIG: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: one, size: few}\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_goes_over_to_server_side_apply() {
    let Some(kubectl) = Kubectl::start().await else {
        return;
    };
    let file = kubectl.file("c.yaml", CONFIG);
    holds(&kubectl.run(&format!("apply -f {file}")).await, &["created"]);
    let dry = kubectl.file("dry.yaml", &CONFIG.replace("one", "dry"));
    holds(
        &kubectl.run(&format!("apply --dry-run=server -f {dry}")).await,
        &["configured (server dry run)"],
    );
    assert_eq!(kubectl.run("get configmap c -o jsonpath={.data.a}").await, "one");

    // Fields that were applied on the client side and have not changed are not conflicts.
    let other = kubectl.file("other.yaml", &CONFIG.replace("one", "two"));
    holds(
        &kubectl.run(&format!("apply --server-side -f {other}")).await,
        &["serverside-applied"],
    );
    let managed = kubectl.run("get configmap c -o yaml --show-managed-fields").await;
    holds(&managed, &["manager: kubectl\n", "operation: Apply", "a: two"]);
    assert!(!managed.contains("kubectl-client-side-apply"), "{managed}");
    // So the server knows which fields to remove.
    let less = kubectl.file("less.yaml", &CONFIG.replace(", size: few", ""));
    kubectl.run(&format!("apply --server-side -f {less}")).await;
    assert_eq!(
        kubectl.run("get configmap c -o jsonpath={.data}").await,
        "{\"a\":\"one\"}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_is_replaced_labelled_and_edited() {
    let Some(kubectl) = Kubectl::start().await else {
        return;
    };
    let file = kubectl.file("c.yaml", CONFIG);
    holds(&kubectl.fail(&format!("replace -f {file}")).await, &["NotFound"]);
    holds(&kubectl.run(&format!("create -f {file}")).await, &["created"]);
    holds(
        &kubectl.fail(&format!("create -f {file}")).await,
        &["AlreadyExists"],
    );
    let uid = kubectl.run("get configmap c -o jsonpath={.metadata.uid}").await;
    let other = kubectl.file("other.yaml", &CONFIG.replace("one", "two"));
    holds(&kubectl.run(&format!("replace -f {other}")).await, &["replaced"]);
    assert_eq!(
        kubectl
            .run("get configmap c -o jsonpath={.data.a}{.metadata.uid}")
            .await,
        format!("two{uid}")
    );
    holds(
        &kubectl.run(&format!("replace --force -f {file}")).await,
        &["deleted", "replaced"],
    );
    assert_ne!(
        kubectl.run("get configmap c -o jsonpath={.metadata.uid}").await,
        uid,
        "a new object"
    );

    holds(&kubectl.run("label configmap c tier=one").await, &["labeled"]);
    holds(
        &kubectl.fail("label configmap c tier=two").await,
        &["already has a value (one)"],
    );
    kubectl.run("label configmap c tier=two --overwrite").await;
    holds(
        &kubectl
            .fail("annotate configmap c a=b --resource-version=1")
            .await,
        &["the object has been modified"],
    );
    kubectl.run("annotate configmap c a=b").await;
    kubectl.run("label configmap c tier-").await;
    kubectl.run("create service clusterip s --tcp=80:80").await;
    holds(&kubectl.run("edit service s").await, &["edited"]);
    assert_eq!(
        kubectl
            .run("get service s -o jsonpath={.spec.sessionAffinity}")
            .await,
        "ClientIP"
    );
    holds(
        &kubectl.fail("edit configmap none").await,
        &["configmaps \"none\" not found"],
    );
    kubectl.run("create configmap d").await;
    kubectl.run("label configmaps --all group=g").await;
    let names = kubectl.run("get configmaps -l group=g -o name").await;
    holds(&names, &["configmap/c", "configmap/d"]);
    kubectl.run("delete configmaps -l group=g").await;
    // The objects that every namespace has are created again, without the label.
    assert_eq!(kubectl.run("get configmaps -l group=g -o name").await, "");
    kubectl
        .run("wait --for=create configmap/kube-root-ca.crt --timeout=30s")
        .await;
    holds(
        &kubectl.run("taint nodes --all a=b:NoSchedule").await,
        &["tainted"],
    );
    kubectl.run("taint nodes --all a:NoSchedule-").await;
}
