//! What the webhook refuses, with which message, and what it only warns about.

use http::{Request, StatusCode};
use serde_json::{Value, json};

use super::FIELDS;
use crate::test_env::TestEnv;

/// The API server's answer: its code, its message, and its warnings.
#[derive(Debug)]
struct Answer {
    code: StatusCode,
    message: String,
    warnings: Vec<String>,
}

/// Applies an object like `kubectl apply --server-side`; with `dry_run` nothing is stored.
async fn apply(env: &TestEnv, object: &Value, dry_run: bool) -> Answer {
    let (group, plural) = match object["kind"].as_str() {
        Some("Secret") => ("api/v1", "secrets"),
        Some("ConfigMap") => ("api/v1", "configmaps"),
        Some("SupabaseProject") => ("apis/supabase.strrl.dev/v1alpha1", "supabaseprojects"),
        other => panic!("{other:?}"),
    };
    let (namespace, name) = (&env.namespace, object["metadata"]["name"].as_str().unwrap());
    let dry_run = if dry_run { "&dryRun=All" } else { "" };
    let uri =
        format!("/{group}/namespaces/{namespace}/{plural}/{name}?fieldManager=test&force=true{dry_run}");
    let request = Request::patch(uri)
        .header("content-type", "application/apply-patch+yaml")
        .body(object.to_string().into_bytes().into())
        .unwrap();
    let answer = env.client.send(request).await.unwrap();
    let warnings = answer.headers().get_all("warning");
    let warnings = warnings
        .iter()
        .map(|warning| warning.to_str().unwrap().to_owned())
        .collect();
    let code = answer.status();
    let body: Value = serde_json::from_slice(&answer.into_body().collect_bytes().await.unwrap()).unwrap();
    Answer {
        code,
        message: body["message"].as_str().unwrap_or_default().to_owned(),
        warnings,
    }
}

fn project(more: &Value) -> Value {
    let mut spec = json!({
        "projectId": "shop",
        "database": { "secretRef": { "name": "db" } }, "storage": { "secretRef": { "name": "s3" } },
    });
    json_patch::merge(&mut spec, more);
    json!({
        "apiVersion": "supabase.strrl.dev/v1alpha1", "kind": "SupabaseProject",
        "metadata": { "name": "shop" }, "spec": spec,
    })
}

/// An environment whose webhook is active: a registration takes a moment to take effect.
async fn guarded() -> (TestEnv, impl Sized) {
    let env = TestEnv::new().await;
    let served = env.serve().await;
    let untagged = project(&json!({ "kong": { "image": "kong" } }));
    env.wait()
        .eventually("the webhook to be asked", async || {
            !apply(&env, &untagged, true).await.code.is_success()
        })
        .await;
    (env, served)
}

async fn refused(env: &TestEnv, more: &Value, words: &str) {
    let answer = apply(env, &project(more), true).await;
    assert!(
        !answer.code.is_success() && answer.message.contains(words),
        "{more}: {words:?} is not in {answer:?}"
    );
}

#[tokio::test]
async fn a04_a_reference_without_a_name_is_refused() {
    let (env, _served) = guarded().await;
    for what in ["database", "storage"] {
        let words = format!("{what}.secretRef.name cannot be empty");
        for reference in [json!({ "name": "" }), json!({ "name": null })] {
            refused(&env, &json!({ what: { "secretRef": reference } }), &words).await;
        }
    }
}

#[tokio::test]
async fn a05_a_secret_that_lacks_a_key_is_refused() {
    let (env, _served) = guarded().await;
    for (what, whole) in [
        ("database", env.database_secret()),
        ("storage", env.storage_secret()),
    ] {
        let keys: Vec<&String> = whole.as_object().unwrap().keys().collect();
        assert_eq!(keys.len(), 5);
        for (index, key) in keys.into_iter().enumerate() {
            for (how, value) in [("none", Value::Null), ("empty", json!(""))] {
                let mut lacking = whole.clone();
                json_patch::merge(&mut lacking, &json!({ key: value }));
                let name = format!("{what}-{index}-{how}");
                env.secret(&name, lacking).await;
                let words = format!("{what} secret missing required key '{key}'");
                refused(&env, &json!({ what: { "secretRef": { "name": name } } }), &words).await;
            }
        }
    }
}

/// The original refuses, Stanchion warns: the order of objects in a folder is not defined.
#[tokio::test]
async fn a06_a_secret_that_is_not_there_is_warned_about() {
    let (env, _served) = guarded().await;
    for what in ["database", "storage"] {
        let object = project(&json!({ what: { "secretRef": { "name": "nope" } } }));
        let answer = apply(&env, &object, true).await;
        assert!(answer.code.is_success(), "{answer:?}");
        let words = format!("{what} secret 'nope' not found");
        assert!(
            answer.warnings.iter().any(|warning| warning.contains(&words)),
            "{answer:?}"
        );
    }
    let answer = apply(&env, &project(&json!({})), true).await;
    assert!(
        answer.code.is_success() && answer.warnings.is_empty(),
        "{answer:?}"
    );
}

#[tokio::test]
async fn a07_an_image_needs_a_tag_and_no_blanks() {
    let (env, _served) = guarded().await;
    for field in FIELDS {
        for (image, words) in [
            ("kong", "image must include tag (e.g., 'kong/kong:3.9.1')"),
            ("registry.example.com:5000/kong", "image must include tag"),
            ("a b:c", "invalid image reference format"),
        ] {
            refused(&env, &json!({ field: { "image": image } }), words).await;
        }
        for image in ["kong:1", "registry.example.com:5000/kong@sha256:0123"] {
            let answer = apply(&env, &project(&json!({ field: { "image": image } })), true).await;
            assert!(answer.code.is_success(), "{image}: {answer:?}");
        }
    }
}

/// Every example, document by document, in its order and in reverse.
#[tokio::test]
async fn a06_the_examples_apply_in_any_order() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/supabaseproject");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(files.len() >= 4, "{files:?}");
    for reversed in [false, true] {
        let (env, _served) = guarded().await;
        for file in &files {
            let text = std::fs::read_to_string(file).unwrap();
            let mut objects: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
            // Servers that an example deploys are not of interest here.
            objects.retain(|object| {
                matches!(
                    object["kind"].as_str(),
                    Some("Secret" | "ConfigMap" | "SupabaseProject")
                )
            });
            if reversed {
                objects.reverse();
            }
            for object in &objects {
                let answer = apply(&env, object, false).await;
                assert!(answer.code.is_success(), "{}: {answer:?}", file.display());
            }
        }
    }
}
