//! Children that were damaged while no operator ran are repaired before the database is checked.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use serde_json::json;
use stanchion_api::SupabaseProject;
use stanchion_testkit::proxy::Cut;

use crate::test_env::{TestEnv, is_running};

/// The database does not answer: a restarted operator repairs the children nevertheless, and then reports the database.
#[tokio::test]
async fn children_are_mended_before_the_database_is_asked() {
    let env = TestEnv::new().await;
    let proxy = env.proxy().await;
    let operator = env.operator().await;
    env.project("shop", json!({})).await;
    env.running("shop").await;
    operator.idle().await;
    operator.kill().await;

    let harm = json!({ "spec": { "replicas": 3 } });
    env.patch::<Deployment>("shop-auth", harm).await;
    env.delete::<Service>("shop-kong").await;
    proxy.cut(Cut::Refuse).await;
    let _operator = env.operator().await;
    let repaired = |deployment: &Deployment| deployment.spec.as_ref().unwrap().replicas == Some(1);
    let deployments = env.api::<Deployment>();
    env.wait().until(&deployments, "shop-auth", repaired).await;
    let exists = |_: &Service| true;
    let services = env.api::<Service>();
    env.wait().until(&services, "shop-kong", exists).await;
    let lost = |project: &SupabaseProject| {
        let conditions = &project.status.as_ref().unwrap().conditions;
        conditions
            .iter()
            .any(|known| known.type_ == "PostgreSQLConnected" && known.status == "False")
    };
    env.until("shop", lost).await;
    proxy.restore().await;
    env.until("shop", is_running).await;
}
