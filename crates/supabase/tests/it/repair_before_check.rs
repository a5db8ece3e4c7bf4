//! Children that were damaged while no operator ran are repaired before the database is checked.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use serde_json::json;
use stanchion_api::SupabaseProject;
use stanchion_testkit::proxy::Cut;

use crate::test_env::{TestEnv, is_running};

async fn harm(env: &TestEnv) {
    let replicas = json!({ "spec": { "replicas": 3 } });
    env.patch::<Deployment>("shop-auth", replicas).await;
    env.delete::<Service>("shop-kong").await;
}

async fn is_repaired(env: &TestEnv) {
    let repaired = |deployment: &Deployment| deployment.spec.as_ref().unwrap().replicas == Some(1);
    let deployments = env.api::<Deployment>();
    env.wait().until(&deployments, "shop-auth", repaired).await;
    let exists = |_: &Service| true;
    let services = env.api::<Service>();
    env.wait().until(&services, "shop-kong", exists).await;
}

fn has_lost(project: &SupabaseProject, condition: &str) -> bool {
    let conditions = &project.status.as_ref().unwrap().conditions;
    conditions
        .iter()
        .any(|known| known.type_ == condition && known.status == "False")
}

/// Only the bucket's key is wrong: an operator repairs the children nevertheless, and so does one that starts. Storage
/// does not get the key that does not work.
#[tokio::test]
async fn children_are_mended_while_the_bucket_is_lost() {
    let env = TestEnv::new().await;
    let operator = env.operator().await;
    env.project("shop", json!({})).await;
    env.running("shop").await;
    let mut wrong = env.storage_secret();
    wrong["secretAccessKey"] = json!("another-key");
    env.secret("s3", wrong).await;
    let is_lost = |project: &SupabaseProject| has_lost(project, "S3Connected");
    env.until("shop", is_lost).await;
    let before = env.generations().await;
    harm(&env).await;
    is_repaired(&env).await;
    operator.idle().await;
    operator.kill().await;

    harm(&env).await;
    let _operator = env.operator().await;
    is_repaired(&env).await;
    let project = env.until("shop", is_lost).await;
    assert!(!is_running(&project), "{:?}", project.status);
    assert_eq!(env.rolled_since(&before).await, ["shop-auth"]);
    env.secret("s3", env.storage_secret()).await;
    env.until("shop", is_running).await;
}

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

    harm(&env).await;
    proxy.cut(Cut::Refuse).await;
    let _operator = env.operator().await;
    is_repaired(&env).await;
    env.until("shop", |project| has_lost(project, "PostgreSQLConnected"))
        .await;
    proxy.restore().await;
    env.until("shop", is_running).await;
}
