//! Custom resources: define, explain, validate, apply on the server side, edit, wait.

use super::{Kubectl, holds};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn custom_resources_are_explained_validated_and_edited() {
    let Some(kubectl) = Kubectl::start().await else {
        return;
    };
    kubectl.define_gadgets().await;
    holds(
        &kubectl.run("api-resources --api-group=example.com").await,
        &["gadgets", "gd", "Gadget", "true"],
    );
    holds(
        &kubectl.run("explain gadget.spec").await,
        &["What is wanted.", "size", "How large.", "-required-"],
    );
    let gadget = "apiVersion: example.com/v1\nkind: Gadget\nmetadata: {name: g}\nspec: {size: 3}\n";
    let file = kubectl.file("gadget.yaml", gadget);
    holds(
        &kubectl.run(&format!("apply --server-side -f {file}")).await,
        &["serverside-applied"],
    );
    holds(&kubectl.run("get gd").await, &["NAME", "SIZE", "AGE", "g", "3"]);
    holds(
        &kubectl.run("get gadgets g -o jsonpath={.spec.size}").await,
        &["3"],
    );
    let wrong = kubectl.file("wrong.yaml", &gadget.replace("size: 3", "size: 3, bogus: 1"));
    holds(
        &kubectl.fail(&format!("apply -f {wrong}")).await,
        &["unknown field \"spec.bogus\""],
    );
    let small = kubectl.file("small.yaml", &gadget.replace("size: 3", "size: 0"));
    holds(
        &kubectl.fail(&format!("apply --server-side -f {small}")).await,
        &["spec.size", "greater than or equal to 1"],
    );
    let other = kubectl.file("other.yaml", &gadget.replace("size: 3", "size: 4"));
    holds(
        &kubectl
            .fail(&format!("apply --server-side --field-manager=other -f {other}"))
            .await,
        &["conflict with \"kubectl\"", ".spec.size"],
    );
    kubectl
        .run(&format!(
            "apply --server-side --field-manager=other --force-conflicts -f {other}"
        ))
        .await;
    holds(&kubectl.run("edit gadget g").await, &["edited"]);
    holds(
        &kubectl.run("get gadget g -o yaml").await,
        &["size: 9", "generation: 3"],
    );
    kubectl.run("patch gadget g --subresource=status --type=merge -p {\"status\":{\"phase\":\"Ready\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}").await;
    kubectl
        .run("wait --for=condition=Ready gadget/g --timeout=30s")
        .await;
    kubectl
        .run("wait --for=jsonpath={.status.phase}=Ready gadget/g --timeout=30s")
        .await;
    kubectl.run("delete crd gadgets.example.com --timeout=30s").await;
    holds(&kubectl.fail("get gadgets").await, &["NotFound"]);
}
