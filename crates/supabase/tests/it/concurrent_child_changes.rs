//! Changes of one child while another is written.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use kube::ResourceExt as _;
use serde_json::json;
use stanchion_testkit::faults::{Call, Fault, Rule};

use crate::test_env::TestEnv;

fn writes_service(call: &Call) -> bool {
    call.write.is_some() && call.target.resource == "services" && call.target.name == "shop-auth"
}

/// The reconcile that writes the Service read the Deployment before it was deleted, and must not consider the project
/// complete.
#[tokio::test]
async fn a_child_that_goes_while_another_is_written_comes_back() {
    let env = TestEnv::new().await;
    let operator = env.operator().await;
    env.project("shop", json!({})).await;
    env.running("shop").await;
    operator.idle().await;
    let before = operator.faults.calls().len();
    let slow = Rule::when(writes_service, Fault::Delay(Duration::from_secs(2)));
    operator.faults.script(slow.times(1));
    env.delete::<Service>("shop-auth").await;
    let begun = async || operator.faults.calls().iter().skip(before).any(writes_service);
    env.wait().eventually("the Service to be written", begun).await;
    let deployments = env.api::<Deployment>();
    let studio = deployments.get("shop-studio").await.unwrap().uid();
    env.delete::<Deployment>("shop-studio").await;
    let is_new = |deployment: &Deployment| deployment.uid() != studio;
    env.wait().until(&deployments, "shop-studio", is_new).await;
}
