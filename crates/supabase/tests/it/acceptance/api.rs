//! The CRD on the API server: what it accepts, defaults and refuses.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use stanchion_api::SupabaseProject;

use super::FIELDS;
use crate::test_env::TestEnv;

/// Objects as the server stores them, without defaults of our own types.
fn raw(env: &TestEnv) -> Api<DynamicObject> {
    let resource = ApiResource::erase::<SupabaseProject>(&());
    Api::namespaced_with(env.client.clone(), &env.namespace, &resource)
}

fn project(spec: &Value) -> Value {
    json!({
        "apiVersion": "supabase.strrl.dev/v1alpha1", "kind": "SupabaseProject",
        "metadata": { "name": "shop" }, "spec": spec,
    })
}

fn smallest() -> Value {
    json!({
        "projectId": "shop",
        "database": { "secretRef": { "name": "db" } }, "storage": { "secretRef": { "name": "s3" } },
    })
}

/// Every field of the original's spec.
fn complete() -> Value {
    let component = || {
        json!({
            "image": "example.com/image:1", "replicas": 2,
            "resources": {
                "limits": { "cpu": "1", "memory": "1Gi" }, "requests": { "cpu": "100m", "memory": "128Mi" },
                "claims": [{ "name": "gpu" }],
            },
            "extraEnv": [
                { "name": "PLAIN", "value": "1" },
                { "name": "SECRET", "valueFrom": { "secretKeyRef": { "name": "more", "key": "value" } } },
            ],
        })
    };
    let with = |more: Value| {
        let mut component = component();
        json_patch::merge(&mut component, &more);
        component
    };
    json!({
        "projectId": "shop-1",
        "database": { "secretRef": { "name": "db", "namespace": "ns" }, "sslMode": "require", "maxConnections": 50 },
        "storage": { "secretRef": { "name": "s3", "namespace": "ns" }, "forcePathStyle": false },
        "kong": component(), "realtime": component(), "postgrest": component(), "storageApi": component(),
        "meta": component(),
        "auth": with(json!({
            "smtpSecretRef": { "name": "smtp", "namespace": "ns" }, "oauthSecretRef": { "name": "oauth", "namespace": "ns" },
        })),
        "studio": with(json!({
            "publicUrl": "https://shop.example.com",
            "dashboardBasicAuthSecretRef": { "name": "login", "namespace": "ns" },
        })),
        "ingress": {
            "enabled": true, "className": "nginx", "annotations": { "a": "b" }, "host": "shop.example.com",
            "tlsSecretName": "tls",
        },
    })
}

/// Fields of `sent` that are missing in `stored`.
fn lost(place: &str, sent: &Value, stored: &Value) -> Vec<String> {
    match (sent, stored) {
        (Value::Object(sent), Value::Object(_)) => sent
            .iter()
            .flat_map(|(name, value)| lost(&format!("{place}.{name}"), value, &stored[name]))
            .collect(),
        (Value::Array(sent), Value::Array(stored)) if sent.len() == stored.len() => {
            let pairs = sent.iter().zip(stored).enumerate();
            pairs
                .flat_map(|(index, (sent, stored))| lost(&format!("{place}[{index}]"), sent, stored))
                .collect()
        }
        _ if sent == stored => Vec::new(),
        _ => vec![format!("{place}: {stored}")],
    }
}

#[tokio::test]
async fn a01_the_definition_is_the_originals_and_takes_all_of_its_fields() {
    let env = TestEnv::new().await;
    let definitions: Api<CustomResourceDefinition> = Api::all(env.client.clone());
    let spec = definitions
        .get("supabaseprojects.supabase.strrl.dev")
        .await
        .unwrap()
        .spec;
    let names = &spec.names;
    assert_eq!(
        (spec.group.as_str(), spec.scope.as_str()),
        ("supabase.strrl.dev", "Namespaced")
    );
    assert_eq!(
        (
            names.kind.as_str(),
            names.plural.as_str(),
            names.singular.as_deref()
        ),
        ("SupabaseProject", "supabaseprojects", Some("supabaseproject"))
    );
    assert_eq!(names.list_kind.as_deref(), Some("SupabaseProjectList"));
    let [version] = spec.versions.as_slice() else {
        panic!("one version: {:?}", spec.versions)
    };
    assert_eq!(
        (version.name.as_str(), version.served, version.storage),
        ("v1alpha1", true, true)
    );
    assert!(version.subresources.as_ref().unwrap().status.is_some());

    let params = PatchParams {
        dry_run: true,
        ..PatchParams::apply("test").validation_strict()
    };
    let object = project(&complete());
    let stored = raw(&env)
        .patch("shop", &params, &Patch::Apply(&object))
        .await
        .unwrap();
    let lost = lost("spec", &complete(), &stored.data["spec"]);
    assert_eq!(lost, [""; 0], "fields that were not kept");
}

#[tokio::test]
async fn a02_defaults_are_in_the_stored_object() {
    let env = TestEnv::new().await;
    let object = serde_json::from_value(project(&smallest())).unwrap();
    let stored = raw(&env).create(&PostParams::default(), &object).await.unwrap();
    let spec = &stored.data["spec"];
    assert_eq!(spec["database"]["sslMode"], "require");
    assert_eq!(spec["database"]["maxConnections"], 20);
    assert_eq!(spec["storage"]["forcePathStyle"], true);
    for field in FIELDS {
        assert_eq!(spec[field]["replicas"], 1, "{field}");
        let image = spec[field]["image"].as_str().unwrap_or_default();
        assert!(image.contains('/') && image.contains(':'), "{field}: {image}");
    }
    assert_eq!(spec["kong"]["image"], "kong/kong:3.9.3");
}

#[tokio::test]
async fn a03_what_cannot_be_is_refused_by_the_schema() {
    let env = TestEnv::new().await;
    for (more, field) in [
        (json!({ "projectId": "Bad_ID" }), "spec.projectId"),
        (json!({ "projectId": "-x" }), "spec.projectId"),
        (
            json!({ "database": { "maxConnections": 0 } }),
            "spec.database.maxConnections",
        ),
        (
            json!({ "database": { "maxConnections": 101 } }),
            "spec.database.maxConnections",
        ),
        (json!({ "kong": { "replicas": 11 } }), "spec.kong.replicas"),
        (json!({ "meta": { "replicas": -1 } }), "spec.meta.replicas"),
        (json!({ "projectId": null }), "spec.projectId"),
        (json!({ "database": null }), "spec.database"),
        (
            json!({ "storage": { "secretRef": null } }),
            "spec.storage.secretRef",
        ),
    ] {
        let mut spec = smallest();
        json_patch::merge(&mut spec, &more);
        let object: DynamicObject = serde_json::from_value(project(&spec)).unwrap();
        let refused = raw(&env).create(&PostParams::default(), &object).await;
        let refused = refused.expect_err(&object.name_any()).to_string();
        assert!(
            refused.contains(field) && refused.contains("is invalid"),
            "{more}: {refused}"
        );
    }
}
