//! The status of a project.

use k8s_openapi::api::apps::v1::Deployment;
use serde_json::{Value, json};
use stanchion_api::SupabaseProject;
use stanchion_api::supabase::{ComponentPhase, Phase};

use super::shop;
use crate::test_env::{TestEnv, condition, container};

fn phase(project: &SupabaseProject) -> Option<Phase> {
    project.status.as_ref()?.phase
}

fn truth(project: &SupabaseProject, kind: &str) -> String {
    condition(project, kind)
        .map(|(truth, _)| truth)
        .unwrap_or_default()
}

#[tokio::test]
async fn a15_a_new_image_rolls_what_it_belongs_to_and_nothing_else() {
    let (env, _operator, _) = shop(json!({})).await;
    let before = env.generations().await;
    env.patch::<SupabaseProject>("shop", json!({ "spec": { "kong": { "image": "kong/kong:9" } } }))
        .await;
    let project = env.running("shop").await;
    let kong: Deployment = env.get("shop-kong").await;
    assert_eq!(container(&kong).image.as_deref(), Some("kong/kong:9"));
    assert_eq!(env.rolled_since(&before).await, ["shop-kong"]);
    let generation = project.metadata.generation;
    let status = project.status.unwrap();
    assert_eq!(status.observed_generation, generation);
    assert_eq!(status.components["kong"].version.as_deref(), Some("kong/kong:9"));
}

#[tokio::test]
async fn a16_a_project_that_runs_says_so() {
    let (_stage, _operator, project) = shop(json!({})).await;
    for (kind, expected, reason) in [
        ("Ready", "True", "AllComponentsReady"),
        ("Progressing", "False", "ReconciliationComplete"),
        ("Available", "True", "EndpointsAvailable"),
        ("Degraded", "False", "AllComponentsReady"),
        ("PostgreSQLConnected", "True", "Connected"),
        ("S3Connected", "True", "Connected"),
        ("NetworkReady", "True", "ServicesConfigured"),
        ("SecretsReady", "True", "SecretsGenerated"),
        ("KongReady", "True", "DeploymentReady"),
        ("AuthReady", "True", "DeploymentReady"),
        ("PostgRESTReady", "True", "DeploymentReady"),
        ("RealtimeReady", "True", "DeploymentReady"),
        ("StorageReady", "True", "DeploymentReady"),
        ("MetaReady", "True", "DeploymentReady"),
        ("StudioReady", "True", "DeploymentReady"),
    ] {
        let found = condition(&project, kind);
        assert_eq!(found, Some((expected.into(), reason.into())), "{kind}");
    }
    let spec = serde_json::to_value(&project.spec).unwrap();
    let status = project.status.unwrap();
    assert_eq!(status.message.as_deref(), Some("All components running"));
    assert_eq!(status.components.len(), 7);
    for (field, component) in &status.components {
        assert!(component.ready, "{field}");
        assert_eq!(component.phase, Some(ComponentPhase::Running), "{field}");
        assert_eq!((component.replicas, component.ready_replicas), (1, 1), "{field}");
        assert_eq!(json!(component.version), spec[field]["image"], "{field}");
    }
}

#[tokio::test]
async fn a17_a_missing_secret_is_named_and_its_appearance_wakes() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    let missing = json!({ "database": { "secretRef": { "name": "later" } } });
    env.project("shop", missing).await;
    let waiting = |project: &SupabaseProject| {
        condition(project, "Ready") == Some(("False".into(), "DependencyValidationFailed".into()))
    };
    let project = env.until("shop", waiting).await;
    let status = project.status.unwrap();
    assert_eq!(status.phase, Some(Phase::Failed));
    assert_eq!(
        status.message.as_deref(),
        Some("Dependency validation failed: database secret 'later' not found")
    );
    let mut incomplete = env.database_secret();
    incomplete["host"] = json!("");
    env.secret("later", incomplete).await;
    let lacks = "Dependency validation failed: database secret missing required key 'host'";
    env.says("shop", lacks).await;
    env.secret("later", env.database_secret()).await;
    env.running("shop").await;
}

/// Pods read the value itself, and the operator's check would succeed with another one.
#[tokio::test]
async fn b04_a_value_with_a_line_break_at_its_end_is_named() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    let mut broken = env.storage_secret();
    let key = broken["secretAccessKey"].as_str().unwrap().to_owned();
    broken["secretAccessKey"] = json!(format!("{key}\n"));
    env.secret("s3", broken).await;
    env.project("shop", json!({})).await;
    let says = "Dependency validation failed: storage secret: the value of 'secretAccessKey' ends in a line break; pods \
                would use it with the value: remove it";
    env.says("shop", says).await;
    env.secret("s3", env.storage_secret()).await;
    env.running("shop").await;
}

/// With a provider without a secret a pod could not start; once its Secret is corrected, the project continues.
#[tokio::test]
async fn a_provider_without_a_secret_is_named() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.secret("oauth", json!({ "github-client-id": "id" })).await;
    let auth = json!({ "auth": { "oauthSecretRef": { "name": "oauth" } } });
    env.project("shop", auth).await;
    let lacks = "Dependency validation failed: OAuth secret missing required key 'github-secret'";
    env.says("shop", lacks).await;
    let whole = json!({ "github-client-id": "id", "github-secret": "secret" });
    env.secret("oauth", whole).await;
    env.running("shop").await;
}

#[tokio::test]
async fn a19_the_originals_events_are_told_once() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    let later = json!({ "database": { "secretRef": { "name": "later" } } });
    env.project("shop", later).await;
    env.until("shop", |project| phase(project) == Some(Phase::Failed))
        .await;
    env.secret("later", env.database_secret()).await;
    env.running("shop").await;
    let expected = [
        [
            "Warning",
            "ValidationFailed",
            "Dependency validation failed: database secret 'later' not found",
        ],
        ["Normal", "SecretsCreated", "JWT secrets generated successfully"],
        [
            "Normal",
            "DatabaseInitialized",
            "PostgreSQL database initialized successfully",
        ],
        ["Normal", "PhaseChanged", "SupabaseProject is now Running"],
    ];
    // Events are sent after the status is written.
    let reported = env
        .wait()
        .eventually("all events", async || {
            let reported = env.events("shop").await;
            let all = expected
                .iter()
                .all(|event| reported.iter().any(|reported| reported == event));
            if all {
                Ok(reported)
            } else {
                Err(format!("{reported:?}"))
            }
        })
        .await;
    for event in expected {
        let times = reported.iter().filter(|reported| *reported == &event).count();
        assert_eq!(times, 1, "{event:?}");
    }
}

#[tokio::test]
async fn b09_a_pod_that_cannot_run_is_reported_in_its_own_words_and_recovers() {
    let fails_and_recovers = async |auth: Value, words: &str| {
        let env = TestEnv::new().await;
        let _operator = env.operator().await;
        env.project("shop", json!({ "auth": auth })).await;
        let project = env
            .until("shop", |project| phase(project) == Some(Phase::Failed))
            .await;
        let message = project.status.as_ref().unwrap().message.clone().unwrap();
        assert!(message.contains("auth") && message.contains(words), "{message}");
        let truths = ["Ready", "Degraded", "AuthReady", "KongReady"].map(|kind| truth(&project, kind));
        assert_eq!(truths, ["False", "True", "False", "True"]);
        let auth = &project.status.as_ref().unwrap().components["auth"];
        assert!(
            !auth.ready && auth.phase == Some(ComponentPhase::Failed),
            "{auth:?}"
        );
        env.project("shop", json!({ "auth": { "image": "supabase/gotrue:v2.196.0" } }))
            .await;
        let project = env.running("shop").await;
        assert_eq!(truth(&project, "Degraded"), "False");
    };
    let nowhere = json!({ "nodeSelector": { "example.com/no": "where" } });
    tokio::join!(
        fails_and_recovers(json!({ "image": "registry/no-such-image:1" }), "Image"),
        fails_and_recovers(json!({ "image": "registry/crash-loop:1" }), "CrashLoopBackOff"),
        fails_and_recovers(nowhere, "node affinity/selector"),
    );
}

#[tokio::test]
async fn b13_endpoints_and_dependencies_are_filled_in() {
    let spec = json!({ "ingress": { "enabled": true, "host": "shop.example.com", "tlsSecretName": "tls" } });
    let (_stage, _operator, project) = shop(spec).await;
    let status = project.status.unwrap();
    let endpoints = serde_json::to_value(status.endpoints.unwrap()).unwrap();
    let expected = json!({
        "api": "https://shop.example.com", "auth": "http://shop-auth:9999", "realtime": "http://shop-realtime:4000",
        "storage": "http://shop-storage:5000", "rest": "http://shop-postgrest:3000",
    });
    assert_eq!(endpoints, expected);
    let dependencies = status.dependencies.unwrap();
    for dependency in [dependencies.postgresql.unwrap(), dependencies.s3.unwrap()] {
        assert!(dependency.connected && dependency.error.is_none());
        assert!(dependency.latency_ms.is_some() && dependency.last_connected_time.is_some());
    }
}
