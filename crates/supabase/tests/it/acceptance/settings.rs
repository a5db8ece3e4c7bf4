//! The settings of a component in the spec, on its Deployment.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Container, EnvVar};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::networking::v1::Ingress;
use kube::Api;
use kube::api::ListParams;
use serde_json::{Value, json};
use stanchion_api::SupabaseProject;

use super::shop;
use crate::test_env::{TestEnv, container, is_running};

fn variable<'a>(container: &'a Container, name: &str) -> Vec<&'a EnvVar> {
    let all = container.env.iter().flatten();
    all.filter(|variable| variable.name == name).collect()
}

fn resources(container: &Container) -> Value {
    json!(container.resources)
}

#[tokio::test]
async fn a14_what_the_spec_says_of_a_component_is_so() {
    let kong = json!({
        "image": "mirror.example.com:5000/kong:1", "replicas": 3,
        "resources": { "limits": { "memory": "1Gi" } },
        "extraEnv": [{ "name": "KONG_DNS_ORDER", "value": "A" }, { "name": "MORE", "value": "1" }],
    });
    let (env, _operator, _) = shop(json!({ "kong": kong })).await;
    let deployment: Deployment = env.get("shop-kong").await;
    let kong = container(&deployment);
    assert_eq!(deployment.spec.as_ref().unwrap().replicas, Some(3));
    assert_eq!(kong.image.as_deref(), Some("mirror.example.com:5000/kong:1"));
    assert_eq!(
        resources(kong),
        json!({ "limits": { "memory": "1Gi" } }),
        "nothing of the defaults"
    );
    let order = variable(kong, "KONG_DNS_ORDER");
    assert_eq!(
        (order.len(), order[0].value.as_deref()),
        (1, Some("A")),
        "the user's word counts"
    );
    assert_eq!(variable(kong, "MORE").len(), 1);

    for (name, requests, limits) in [
        ("auth", ("64Mi", "50m"), ("128Mi", "100m")),
        ("postgrest", ("128Mi", "100m"), ("256Mi", "200m")),
        ("realtime", ("256Mi", "100m"), ("512Mi", "500m")),
        ("storage", ("256Mi", "100m"), ("512Mi", "500m")),
        ("meta", ("192Mi", "50m"), ("256Mi", "200m")),
        ("studio", ("256Mi", "100m"), ("512Mi", "500m")),
    ] {
        let deployment: Deployment = env.get(&format!("shop-{name}")).await;
        let expected = json!({
            "requests": { "memory": requests.0, "cpu": requests.1 }, "limits": { "memory": limits.0, "cpu": limits.1 },
        });
        assert_eq!(resources(container(&deployment)), expected, "{name}");
    }
}

#[tokio::test]
async fn b07_zero_is_zero_and_what_is_switched_off_goes() {
    let ingress = json!({ "enabled": true, "host": "shop.example.com" });
    let (env, _operator, project) = shop(json!({ "meta": { "replicas": 0 }, "ingress": ingress })).await;
    let meta: Deployment = env.get("shop-meta").await;
    assert_eq!(meta.spec.unwrap().replicas, Some(0));
    assert!(project.status.as_ref().unwrap().components["meta"].ready);
    env.get::<Ingress>("shop").await;
    env.project("shop", json!({ "studio": { "enabled": false } }))
        .await;
    env.wait().gone(&env.api::<Ingress>(), "shop").await;
    env.wait().gone(&env.api::<Deployment>(), "shop-studio").await;
    let project = env.running("shop").await;
    assert!(!project.status.unwrap().components.contains_key("studio"));
}

#[tokio::test]
async fn b12_a_mail_server_and_providers_reach_auth() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    let smtp = json!({
        "host": "smtp.example.com", "port": "587", "username": "shop", "password": "p@ss", "from": "shop@example.com",
    });
    let oauth = json!({ "github-client-id": "id", "github-secret": "hush" });
    env.secret("smtp", smtp).await;
    let spec = json!({
        "auth": { "smtpSecretRef": { "name": "smtp" }, "oauthSecretRef": { "name": "oauth" } },
    });
    env.project("shop", spec).await;
    // A missing Secret is noticed, and so is its creation.
    let waits = "Dependency validation failed: OAuth secret 'oauth' not found";
    env.says("shop", waits).await;
    env.secret("oauth", oauth).await;
    env.running("shop").await;
    let auth = env.pod("shop-auth").await;
    for (name, value) in [
        ("GOTRUE_SMTP_HOST", "smtp.example.com"),
        ("GOTRUE_SMTP_PORT", "587"),
        ("GOTRUE_SMTP_USER", "shop"),
        ("GOTRUE_SMTP_PASS", "p@ss"),
        ("GOTRUE_SMTP_ADMIN_EMAIL", "shop@example.com"),
        ("GOTRUE_MAILER_AUTOCONFIRM", "false"),
        ("GOTRUE_EXTERNAL_GITHUB_ENABLED", "true"),
        ("GOTRUE_EXTERNAL_GITHUB_CLIENT_ID", "id"),
        ("GOTRUE_EXTERNAL_GITHUB_SECRET", "hush"),
    ] {
        assert_eq!(auth.value(name), value, "{name}");
    }
    // The Deployment contains none of the values.
    let text = serde_json::to_string(&auth.container).unwrap();
    assert!(!text.contains("p@ss") && !text.contains("hush"), "{text}");
}

/// The links in mails lead to the public URL; without one they lead to an address that only pods reach.
#[tokio::test]
async fn b12_mails_without_a_public_url_are_warned_of() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    let smtp = json!({
        "host": "smtp.example.com", "port": "587", "username": "shop", "password": "p@ss", "from": "shop@example.com",
    });
    env.secret("smtp", smtp).await;
    let network = |project: &SupabaseProject| {
        let conditions = project.status.iter().flat_map(|status| &status.conditions);
        let mut found = conditions.filter(|known| known.type_ == "NetworkReady");
        found
            .next()
            .map(|known| known.message.clone())
            .unwrap_or_default()
    };
    env.project("shop", json!({ "auth": { "smtpSecretRef": { "name": "smtp" } } }))
        .await;
    let warned = network(&env.running("shop").await);
    assert!(
        warned.contains("http://shop-kong:8000") && warned.contains("studio.publicUrl"),
        "{warned}"
    );
    let events: Api<Event> = Api::namespaced(env.client.clone(), &env.namespace);
    env.wait()
        .eventually("the event about the public URL", async || {
            let reported = events.list(&ListParams::default()).await.unwrap();
            reported
                .iter()
                .any(|event| event.reason.as_deref() == Some("PublicURLMissing"))
        })
        .await;
    env.patch::<SupabaseProject>(
        "shop",
        json!({ "spec": { "studio": { "publicUrl": "https://shop.example.com" } } }),
    )
    .await;
    let is_quiet = |project: &SupabaseProject| is_running(project) && network(project).is_empty();
    env.until("shop", is_quiet).await;
}
