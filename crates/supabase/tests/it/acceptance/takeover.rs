//! Adopts a running installation of the original operator.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use kube::ResourceExt as _;
use kube::api::PostParams;
use serde_json::{Value, json};
use stanchion_api::SupabaseProject;

use super::{COMPONENTS, labels};
use crate::test_env::TestEnv;

fn meta(project: &SupabaseProject, name: &str, component: &str) -> Value {
    let owner = json!({
        "apiVersion": "supabase.strrl.dev/v1alpha1", "kind": "SupabaseProject", "name": "shop",
        "uid": project.uid().unwrap(), "controller": true, "blockOwnerDeletion": true,
    });
    json!({ "name": format!("shop-{name}"), "labels": labels("shop", name, component), "ownerReferences": [owner] })
}

/// As the predecessor wrote it: by plain updates, with its errors.
fn old_deployment(project: &SupabaseProject, name: &str, component: &str) -> Deployment {
    let labels = labels("shop", name, component);
    let container = json!({
        "name": name, "image": format!("example.com/{name}:1"),
        "ports": [{ "name": "old", "containerPort": 1234, "protocol": "TCP" }],
        "env": [
            { "name": "PGRST_JWT_SECRET_IS_BASE64", "value": "true" },
            { "name": "KONG_ADMIN_LISTEN", "value": "0.0.0.0:8001" },
        ],
    });
    serde_json::from_value(json!({
        "metadata": meta(project, name, component),
        "spec": {
            "replicas": 1, "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": { "containers": [container] } },
        },
    }))
    .unwrap()
}

fn old_service(project: &SupabaseProject, name: &str, component: &str) -> Service {
    serde_json::from_value(json!({
        "metadata": meta(project, name, component),
        "spec": { "selector": labels("shop", name, component), "ports": [{ "name": "old", "port": 1234 }] },
    }))
    .unwrap()
}

#[tokio::test]
async fn a09_what_a_predecessor_left_is_taken_over_and_corrected() {
    let env = TestEnv::new().await;
    let project = env.project("shop", json!({})).await;
    let finalizer = json!({ "metadata": { "finalizers": ["supabase.strrl.dev/finalizer"] } });
    env.patch::<SupabaseProject>("shop", finalizer).await;
    let (deployments, services) = (env.api::<Deployment>(), env.api::<Service>());
    let mut known = BTreeMap::new();
    for (name, component) in COMPONENTS {
        let params = PostParams::default();
        let old = old_deployment(&project, name, component);
        let deployment = deployments.create(&params, &old).await.unwrap();
        let old = old_service(&project, name, component);
        let service = services.create(&params, &old).await.unwrap();
        known.insert(format!("shop-{name}"), (deployment.uid(), service.uid()));
    }
    let maps = env.api::<ConfigMap>();
    for (name, component, file) in [
        ("kong-config", "api-gateway", "kong-entrypoint.sh"),
        ("db-init", "database", "run-migrations.sh"),
    ] {
        let old = json!({ "metadata": meta(&project, name, component), "data": { file: "old" } });
        let old: ConfigMap = serde_json::from_value(old).unwrap();
        maps.create(&PostParams::default(), &old).await.unwrap();
    }
    let job = json!({
        "metadata": meta(&project, "db-init", "database"),
        "spec": { "suspend": true, "template": { "spec": {
            "restartPolicy": "Never", "containers": [{ "name": "init", "image": "postgres:15-alpine" }],
        } } },
    });
    let job: Job = serde_json::from_value(job).unwrap();
    let jobs = env.api::<Job>();
    jobs.create(&PostParams::default(), &job).await.unwrap();
    let keys: Secret = serde_json::from_value(json!({
        "metadata": { "name": "shop-jwt" },
        "stringData": { "jwt-secret": "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3I=", "anon-key": "a.b.c" },
    }))
    .unwrap();
    let secrets = env.api::<Secret>();
    secrets.create(&PostParams::default(), &keys).await.unwrap();
    let _operator = env.operator().await;
    env.running("shop").await;

    for (child, before) in known {
        let deployment: Deployment = env.get(&child).await;
        let service: Service = env.get(&child).await;
        assert_eq!(
            (deployment.uid(), service.uid()),
            before,
            "{child} was not made anew"
        );
        let text = serde_json::to_string(&(&deployment.spec, &service.spec)).unwrap();
        for wrong in ["PGRST_JWT_SECRET_IS_BASE64", "0.0.0.0:8001", "1234", "\"old\""] {
            assert!(!text.contains(wrong), "{child}: {wrong} in {text}");
        }
    }
    let config: ConfigMap = env.get("shop-kong-config").await;
    let text = serde_json::to_string(&config.data).unwrap();
    assert!(
        text.contains("_format_version") && !text.contains("\"old\""),
        "{text}"
    );
    // Nothing reads the scripts any more; the Job ends by itself.
    env.wait().gone(&maps, "shop-db-init").await;
    jobs.get("shop-db-init").await.unwrap();
    let keys = env.values("shop-jwt").await;
    assert_eq!(keys["jwt-secret"], "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3I=");
    assert_eq!(
        keys["anon-key-previous"], "a.b.c",
        "a key that nobody verifies is replaced"
    );
    assert!(keys.contains_key("pg-meta-crypto-key"));

    // Its finalizer blocks nothing, even if the Secrets are deleted first.
    env.delete::<Secret>("db").await;
    env.delete::<Secret>("s3").await;
    env.delete::<SupabaseProject>("shop").await;
    let projects = env.api::<SupabaseProject>();
    Box::pin(env.wait().gone(&projects, "shop")).await;
    env.wait().gone(&deployments, "shop-postgrest").await;
}
