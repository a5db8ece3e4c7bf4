//! The bucket: checked with the user's own key and addressing style, which Storage uses, too.

use serde_json::json;
use stanchion_api::SupabaseProject;
use stanchion_testkit::s3::S3;

use super::shop;
use crate::test_env::{TestEnv, condition};

fn s3_is(project: &SupabaseProject, truth: &str) -> bool {
    condition(project, "S3Connected").is_some_and(|(found, _)| found == truth)
}

#[tokio::test]
async fn b04_a_wrong_key_is_found_out_and_a_right_one_recovers() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    let mut wrong = env.storage_secret();
    wrong["secretAccessKey"] = json!("wrong");
    env.secret("s3", wrong).await;
    env.project("shop", json!({})).await;
    let project = env.until("shop", |project| s3_is(project, "False")).await;
    assert_eq!(condition(&project, "S3Connected").unwrap().1, "SecretKeyWrong");
    assert_eq!(condition(&project, "Ready").unwrap().0, "False");
    let s3 = project.status.unwrap().dependencies.unwrap().s3.unwrap();
    assert!(!s3.connected && s3.error.unwrap().contains(env.s3.bucket()));
    env.secret("s3", env.storage_secret()).await;
    let project = env.running("shop").await;
    assert!(s3_is(&project, "True"));
}

#[tokio::test]
async fn b04_the_region_and_the_rest_of_the_secret_reach_storage() {
    let (env, _operator, _) = shop(json!({})).await;
    let storage = env.pod("shop-storage").await;
    for (name, value) in [
        ("REGION", S3::REGION),
        ("STORAGE_S3_REGION", S3::REGION),
        ("AWS_DEFAULT_REGION", S3::REGION),
        ("GLOBAL_S3_BUCKET", env.s3.bucket()),
        ("GLOBAL_S3_ENDPOINT", &env.s3.endpoint()),
        ("GLOBAL_S3_FORCE_PATH_STYLE", "true"),
        ("AWS_ACCESS_KEY_ID", env.s3.access_key()),
        ("AWS_SECRET_ACCESS_KEY", env.s3.secret_key()),
    ] {
        assert_eq!(storage.value(name), value, "{name}");
    }
}

/// Nothing here resolves a bucket's own host name: that it is requested is the proof.
#[tokio::test]
async fn b07_path_style_can_be_switched_off() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    let mut secret = env.storage_secret();
    secret["endpoint"] = json!("http://s3.example.invalid");
    env.secret("s3", secret).await;
    env.project("shop", json!({ "storage": { "forcePathStyle": false } }))
        .await;
    let project = env.until("shop", |project| s3_is(project, "False")).await;
    assert_eq!(condition(&project, "S3Connected").unwrap().1, "HostNotFound");
    assert!(!project.spec.storage.force_path_style);
    let error = project.status.unwrap().dependencies.unwrap().s3.unwrap().error;
    let host = format!("{}.s3.example.invalid", env.s3.bucket());
    assert!(error.as_ref().unwrap().contains(&host), "{error:?}");
}
