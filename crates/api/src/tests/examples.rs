//! Tests that every example in the repository is a valid object of this API, to the last field.
//!
//! The API server silently drops unknown fields, so a misspelt example would still apply.

use std::fs;
use std::path::Path;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Service};
use kube::CustomResourceExt;
use kube::core::cel;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    GitlabInstance, GitlabProfile, GitlabVersionMap, PostgresInstance, PostgresPolicy, PostgresUser,
    SupabaseProject,
};

/// Every document of every example, with its file.
fn documents(folder: &Path) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(documents(&path));
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            let text = fs::read_to_string(&path).unwrap();
            let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
            all.extend(
                documents
                    .into_iter()
                    .map(|document| (path.display().to_string(), document)),
            );
        }
    }
    all
}

/// Deserializes the document as the type and checks the type's CEL rules and that no field is dropped.
fn check<K: CustomResourceExt + DeserializeOwned + Serialize>(file: &str, document: &Value) {
    let object: K = read(file, document);
    cel::validate_cel(&object).unwrap_or_else(|error| panic!("{file}: {error}"));
}

/// Deserializes the document as the type and checks that no field is dropped.
fn read<K: DeserializeOwned + Serialize>(file: &str, document: &Value) -> K {
    let object: K =
        serde_json::from_value(document.clone()).unwrap_or_else(|error| panic!("{file}: {error}"));
    let understood = serde_json::to_value(&object).unwrap();
    if let Some(path) = overlooked(&document["spec"], &understood["spec"]) {
        panic!("{file}: there is no field spec{path}");
    }
    object
}

/// The path of the first field that the type does not know.
fn overlooked(given: &Value, understood: &Value) -> Option<String> {
    match (given, understood) {
        (Value::Object(given), Value::Object(understood)) => given.iter().find_map(|(key, given)| {
            let inside = understood
                .get(key)
                .map_or(Some(String::new()), |understood| overlooked(given, understood));
            inside.map(|path| format!(".{key}{path}"))
        }),
        (Value::Array(given), Value::Array(understood)) => given
            .iter()
            .zip(understood)
            .find_map(|(given, understood)| overlooked(given, understood)),
        _ => None,
    }
}

#[test]
fn every_example_is_an_object_of_the_api() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let documents = documents(&folder);
    for (file, document) in &documents {
        match (document["apiVersion"].as_str(), document["kind"].as_str()) {
            (Some("db.example.com/v1alpha1"), Some("PostgresUser")) => check::<PostgresUser>(file, document),
            (Some("db.example.com/v1alpha1"), Some("PostgresInstance")) => {
                check::<PostgresInstance>(file, document);
            }
            (Some("supabase.strrl.dev/v1alpha1"), Some("SupabaseProject")) => {
                check::<SupabaseProject>(file, document);
            }
            (Some("pgroles.io/v1alpha1"), Some("PostgresPolicy")) => check::<PostgresPolicy>(file, document),
            (Some("k8s.bnerd.com/v1alpha1"), Some("GitlabInstance")) => {
                check::<GitlabInstance>(file, document);
            }
            (Some("k8s.bnerd.com/v1alpha1"), Some("GitlabProfile")) => check::<GitlabProfile>(file, document),
            (Some("k8s.bnerd.com/v1alpha1"), Some("GitlabVersionMap")) => {
                check::<GitlabVersionMap>(file, document);
            }
            (Some("v1"), Some("Service")) => drop(read::<Service>(file, document)),
            (Some("v1"), Some("PersistentVolumeClaim")) => {
                drop(read::<PersistentVolumeClaim>(file, document));
            }
            (Some("apps/v1"), Some("Deployment")) => drop(read::<Deployment>(file, document)),
            (Some("batch/v1"), Some("Job")) => drop(read::<Job>(file, document)),
            // These kinds have no spec, or no spec that is known here.
            (Some("v1"), Some("Secret" | "ConfigMap")) | (Some("postgresql.cnpg.io/v1"), Some("Cluster")) => {
            }
            kind => panic!("{file}: no type for {kind:?}"),
        }
    }
    assert!(
        documents.len() > 5,
        "{} documents under {}",
        documents.len(),
        folder.display()
    );
}

#[test]
fn a_misspelt_field_and_a_broken_rule_are_found() {
    let good = serde_json::json!({
        "apiVersion": "db.example.com/v1alpha1", "kind": "PostgresUser", "metadata": {"name": "it"},
        "spec": {"username": "it", "database": "app", "password": {"generate": {"minDigits": 1}}},
    });
    check::<PostgresUser>("good", &good);
    let (mut misspelt, mut broken) = (good.clone(), good);
    misspelt["spec"]["password"]["generate"]["minDigit"] = 1.into();
    broken["spec"]["username"] = "a-b".into();
    for bad in [misspelt, broken] {
        std::panic::catch_unwind(|| check::<PostgresUser>("bad", &bad)).unwrap_err();
    }
}

/// F13: an example that names a server verifies it. Those of the sandbox use servers on loopback.
#[test]
fn every_example_verifies_its_server() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut checked = 0;
    for (file, object) in documents(&folder) {
        if file.contains("/sandbox/") {
            continue;
        }
        let spec = &object["spec"];
        let params = &spec["connection"]["params"];
        let mode = match object["kind"].as_str() {
            Some("PostgresInstance") => spec["tls"]["mode"].as_str(),
            Some("SupabaseProject") => spec["database"]["sslMode"].as_str(),
            Some("PostgresPolicy") if !params.is_null() => params["sslMode"].as_str(),
            Some("Secret") if !object["stringData"]["DATABASE_URL"].is_null() => {
                let url = object["stringData"]["DATABASE_URL"].as_str();
                url.and_then(|url| url.split("sslmode=").nth(1))
            }
            _ => continue,
        };
        assert_eq!(mode, Some("verify-full"), "{file}");
        checked += 1;
    }
    assert!(checked >= 9, "{checked} servers");
}
