//! A `List`, which `kubectl get -o yaml` prints for several objects: kubectl reads `OpenAPI` v2 before it sends one.

use super::{Kubectl, holds};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_printed_can_be_applied() {
    let Some(kubectl) = Kubectl::start().await else {
        return;
    };
    kubectl.define_gadgets().await;
    let list = "apiVersion: v1\nkind: List\nitems:\n\
        - {apiVersion: v1, kind: ConfigMap, metadata: {name: one}, data: {a: b}}\n\
        - {apiVersion: example.com/v1, kind: Gadget, metadata: {name: two}, spec: {size: 3}}\n";
    let file = kubectl.file("list.yaml", list);
    holds(
        &kubectl.run(&format!("apply --server-side -f {file}")).await,
        &[
            "configmap/one serverside-applied",
            "gadget.example.com/two serverside-applied",
        ],
    );
    let printed = kubectl.run("get configmap/one gadget/two -o yaml").await;
    holds(&printed, &["kind: List"]);
    kubectl.run("delete configmap/one gadget/two").await;
    let printed = kubectl.file("printed.yaml", &printed);
    holds(
        &kubectl.run(&format!("create -f {printed}")).await,
        &["configmap/one created", "gadget.example.com/two created"],
    );
    let wrong = kubectl.file("wrong.yaml", &list.replace("size: 3", "size: 3, bogus: 1"));
    holds(
        &kubectl.fail(&format!("apply -f {wrong}")).await,
        &["unknown field \"spec.bogus\""],
    );
}
