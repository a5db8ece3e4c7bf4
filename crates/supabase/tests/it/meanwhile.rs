//! Changes of one child while another is written.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use kube::ResourceExt as _;
use serde_json::json;
use stanchion_testkit::faults::{Call, Fault, Rule};

use crate::stage::Stage;

fn writes_service(call: &Call) -> bool {
    call.write.is_some() && call.target.resource == "services" && call.target.name == "shop-auth"
}

/// The reconcile that writes the Service read the Deployment before it was deleted, and must not consider the project
/// complete.
#[tokio::test]
async fn a_child_that_goes_while_another_is_written_comes_back() {
    let stage = Stage::new().await;
    let operator = stage.operator().await;
    stage.project("shop", json!({})).await;
    stage.running("shop").await;
    operator.idle().await;
    let before = operator.faults.calls().len();
    let slow = Rule::when(writes_service, Fault::Delay(Duration::from_secs(2)));
    operator.faults.script(slow.times(1));
    stage.delete::<Service>("shop-auth").await;
    let begun = async || operator.faults.calls().iter().skip(before).any(writes_service);
    stage.wait().eventually("the Service to be written", begun).await;
    let deployments = stage.api::<Deployment>();
    let studio = deployments.get("shop-studio").await.unwrap().uid();
    stage.delete::<Deployment>("shop-studio").await;
    let is_new = |deployment: &Deployment| deployment.uid() != studio;
    stage.wait().until(&deployments, "shop-studio", is_new).await;
}
