//! The gateway: Kong's configuration, who may use it, and the routes to Kong.

use k8s_openapi::api::networking::v1::Ingress;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::json;
use stanchion_api::SupabaseProject;
use stanchion_supabase::HTTPRoute;
use stanchion_testkit::faults::{Call, Fault, Faults, Rule};

use super::kong::{Kong, Verdict, With};
use super::shop;
use crate::test_env::{TestEnv, condition};

#[tokio::test]
async fn a12_kong_is_told_every_route() {
    let (env, _operator, _) = shop(json!({})).await;
    let kong = Kong::of(&env).await;
    let routes = kong.routes();
    let key = "cors key-auth request-transformer acl";
    for (name, path, upstream, guard) in [
        ("auth-v1-open", "/auth/v1/verify", "auth:9999/verify", "cors"),
        (
            "auth-v1-open-callback",
            "/auth/v1/callback",
            "auth:9999/callback",
            "cors",
        ),
        (
            "auth-v1-open-authorize",
            "/auth/v1/authorize",
            "auth:9999/authorize",
            "cors",
        ),
        (
            "auth-v1-open-jwks",
            "/auth/v1/.well-known/jwks.json",
            "auth:9999/.well-known/jwks.json",
            "cors",
        ),
        (
            "auth-v1-open-sso-acs",
            "/auth/v1/sso/saml/acs",
            "auth:9999/sso/saml/acs",
            "cors",
        ),
        (
            "auth-v1-open-sso-metadata",
            "/auth/v1/sso/saml/metadata",
            "auth:9999/sso/saml/metadata",
            "cors",
        ),
        ("auth-v1", "/auth/v1/", "auth:9999/", key),
        ("rest-v1-openapi", "~/rest/v1/$", "postgrest:3000/", key),
        ("rest-v1", "/rest/v1/", "postgrest:3000/", key),
        ("graphql-v1", "/graphql/v1", "postgrest:3000/rpc/graphql", key),
        ("realtime-v1-ws", "/realtime/v1/", "realtime:4000/socket", key),
        (
            "realtime-v1-rest-openapi",
            "/realtime/v1/api/openapi",
            "realtime:4000/api/openapi",
            "request-termination",
        ),
        (
            "realtime-v1-rest-tenants",
            "/realtime/v1/api/tenants",
            "realtime:4000/api/tenants",
            "request-termination",
        ),
        ("realtime-v1-rest", "/realtime/v1/api", "realtime:4000/api", key),
        (
            "storage-v1",
            "/storage/v1/",
            "storage:5000/",
            "cors request-transformer post-function",
        ),
        (
            "well-known-oauth",
            "/.well-known/oauth-authorization-server",
            "auth:9999/.well-known/oauth-authorization-server",
            "cors",
        ),
        ("meta", "/pg/", "meta:8080/", "key-auth acl"),
        (
            "mcp-blocker",
            "/api/mcp",
            "studio:3000/api/mcp",
            "request-termination",
        ),
        ("dashboard", "/", "studio:3000/", "cors basic-auth"),
    ] {
        let url = format!("http://shop-{upstream}");
        let expected = (name, path, url.as_str(), guard.to_owned());
        assert!(
            routes.contains(&expected),
            "{expected:?} is not among {routes:#?}"
        );
    }
}

#[tokio::test]
async fn a20_a_key_or_the_password_opens_what_it_should_and_no_more() {
    let (env, _operator, _) = shop(json!({})).await;
    let (kong, keys) = (Kong::of(&env).await, env.values("shop-jwt").await);
    let (anon, service) = (With::Key(&keys["anon-key"]), With::Key(&keys["service-role-key"]));
    let (publishable, secret) = (
        With::Key(&keys["publishable-key"]),
        With::Key(&keys["secret-key"]),
    );
    let dashboard = With::Basic("supabase", &keys["dashboard-password"]);
    let to = |child: &str| Verdict::To(format!("http://shop-{child}"));
    for (path, with, expected) in [
        ("/", With::Nothing, Verdict::Refused(401)),
        ("/", With::Basic("supabase", "guess"), Verdict::Refused(401)),
        ("/", dashboard, to("studio:3000/")),
        ("/project/default", dashboard, to("studio:3000/")),
        ("/rest/v1/", With::Nothing, Verdict::Refused(401)),
        ("/rest/v1/", anon, Verdict::Refused(403)),
        ("/rest/v1/", service, to("postgrest:3000/")),
        ("/rest/v1/", secret, to("postgrest:3000/")),
        ("/rest/v1/todo", With::Nothing, Verdict::Refused(401)),
        ("/rest/v1/todo", With::Key("guess"), Verdict::Refused(401)),
        ("/rest/v1/todo", anon, to("postgrest:3000/")),
        ("/rest/v1/todo", publishable, to("postgrest:3000/")),
        ("/auth/v1/signup", With::Nothing, Verdict::Refused(401)),
        ("/auth/v1/signup", anon, to("auth:9999/")),
        ("/auth/v1/verify", With::Nothing, to("auth:9999/verify")),
        ("/storage/v1/object", With::Nothing, to("storage:5000/")),
        ("/realtime/v1/api/broadcast", anon, to("realtime:4000/api")),
        ("/realtime/v1/api/tenants", service, Verdict::Refused(403)),
        ("/api/mcp", dashboard, Verdict::Refused(403)),
        ("/mcp", service, Verdict::Refused(403)),
        ("/pg/schemas", With::Nothing, Verdict::Refused(401)),
        ("/pg/schemas", anon, Verdict::Refused(403)),
        ("/pg/schemas", service, to("meta:8080/")),
    ] {
        assert_eq!(kong.ask(path, with), expected, "{path}");
    }
}

#[tokio::test]
async fn b11_an_ingress_leads_to_the_gateway() {
    let ingress = json!({
        "enabled": true, "className": "nginx", "host": "shop.example.com", "tlsSecretName": "tls",
        "annotations": { "cert-manager.io/cluster-issuer": "letsencrypt" },
    });
    let (env, _operator, _) = shop(json!({ "ingress": ingress })).await;
    let ingress: Ingress = env.get("shop").await;
    let annotations = ingress.metadata.annotations.as_ref().unwrap();
    assert_eq!(annotations["cert-manager.io/cluster-issuer"], "letsencrypt");
    let backend = json!({ "service": { "name": "shop-kong", "port": { "number": 8000 } } });
    let expected = json!({
        "ingressClassName": "nginx",
        "rules": [{
            "host": "shop.example.com",
            "http": { "paths": [{ "path": "/", "pathType": "Prefix", "backend": backend }] },
        }],
        "tls": [{ "secretName": "tls", "hosts": ["shop.example.com"] }],
    });
    assert_eq!(json!(ingress.spec), expected);
}

/// The part of the Gateway API's CRD that the operator uses.
fn routes() -> CustomResourceDefinition {
    let open = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let version = json!({
        "name": "v1", "served": true, "storage": true,
        "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": open } } },
    });
    serde_json::from_value(json!({
        "metadata": {
            "name": "httproutes.gateway.networking.k8s.io",
            "annotations": { "api-approved.kubernetes.io": "unapproved, for tests" },
        },
        "spec": {
            "group": "gateway.networking.k8s.io", "scope": "Namespaced", "versions": [version],
            "names": { "kind": "HTTPRoute", "listKind": "HTTPRouteList", "plural": "httproutes", "singular": "httproute" },
        },
    }))
    .unwrap()
}

/// B11 for the Gateway API. Only this test uses the CRD, so it may delete it.
#[tokio::test]
async fn b11_a_route_of_the_gateway_api_leads_to_the_gateway_once_there_is_one() {
    let env = TestEnv::new().await;
    let definitions: Api<CustomResourceDefinition> = Api::all(env.client.clone());
    let name = "httproutes.gateway.networking.k8s.io";
    if definitions.get_opt(name).await.unwrap().is_some() {
        definitions.delete(name, &DeleteParams::default()).await.unwrap();
        env.wait().gone(&definitions, name).await;
    }
    let faults = Faults::new();
    let _operator = env.build(&faults).await.start_and_sync().await;
    let gateway =
        json!({ "parentRefs": [{ "name": "public", "namespace": "gates" }], "hostnames": ["a.example"] });
    env.project("shop", json!({ "gateway": gateway })).await;
    let misses = |project: &SupabaseProject| {
        let message = project
            .status
            .as_ref()
            .and_then(|status| status.message.as_deref());
        message.is_some_and(|message| message.contains("spec.gateway needs the Gateway API"))
    };
    env.until("shop", misses).await;

    env.cluster.install_crds([routes()]).await;
    let asked = json!({ "metadata": { "annotations": { "supabase.strrl.dev/reconcile-at": "now" } } });
    env.patch::<SupabaseProject>("shop", asked).await;
    let project = env.running("shop").await;
    assert_eq!(condition(&project, "NetworkReady").unwrap().1, "RouteConfigured");
    let endpoints = project.status.unwrap().endpoints.unwrap();
    assert_eq!(endpoints.api.as_deref(), Some("https://a.example"));
    let route: HTTPRoute = env.get("shop").await;
    assert_eq!(route.spec.fields["hostnames"], json!(["a.example"]));
    assert_eq!(
        route.spec.fields["rules"],
        json!([{ "backendRefs": [{ "name": "shop-kong", "port": 8000 }] }])
    );
    env.project("shop", json!({})).await;
    env.wait().gone(&env.api::<HTTPRoute>(), "shop").await;

    // Without the gateway, and with a pass that fails before it comes to the route.
    env.project("shop", json!({ "gateway": gateway })).await;
    env.running("shop").await;
    env.get::<HTTPRoute>("shop").await;
    let is_write = |call: &Call| call.write.is_some() && call.target.resource == "deployments";
    faults.script(Rule::when(is_write, Fault::refuse(403)).times(1));
    env.project("shop", json!({ "studio": { "image": "supabase/studio:next" } }))
        .await;
    env.until("shop", |project| {
        condition(project, "NetworkReady").is_some_and(|(status, _)| status == "False")
    })
    .await;
    let asked = json!({ "metadata": { "annotations": { "supabase.strrl.dev/reconcile-at": "again" } } });
    env.patch::<SupabaseProject>("shop", asked).await;
    env.wait().gone(&env.api::<HTTPRoute>(), "shop").await;
}
