//! Dumps what a real API server reports about its built-in kinds into `data/`, for the sandbox to serve.
//!
//! ```text
//! KUBECONFIG=… cargo run -p stanchion-sandbox --example dump -- testing/sandbox/data
//! zstd -19 --rm -f testing/sandbox/data/*.json
//! ```
//!
//! Use a fresh control plane: every object that it has created becomes initial content of the sandbox.

#![allow(
    clippy::indexing_slicing,
    reason = "JSON is indexed by key, and an absent key reads as null"
)]

use std::{collections::BTreeMap, fs, path::PathBuf};

use kube::Client;
use serde_json::{Map, Value, json};

type Error = Box<dyn std::error::Error>;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

/// The kinds whose initial objects other objects rely on.
const BOOTSTRAP: [&str; 9] = [
    "/api/v1/namespaces",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "/apis/rbac.authorization.k8s.io/v1/roles",
    "/apis/rbac.authorization.k8s.io/v1/rolebindings",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
    "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
    "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
    "/api/v1/namespaces/default/services",
];

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let folder = PathBuf::from(std::env::args().nth(1).ok_or("usage: dump FOLDER")?);
    let client = Client::try_default().await?;
    let get = async |path: &str, accept: &str| -> Result<Value, Error> {
        let request = http::Request::get(path)
            .header("accept", accept)
            .body(Vec::new())?;
        Ok(client.request::<Value>(request).await?)
    };

    let core = get("/api", AGGREGATED).await?;
    let groups = get("/apis", AGGREGATED).await?;
    let mut tables = Map::new();
    for (path, resource) in listable(&core, &groups) {
        let table = get(&format!("{path}?limit=1"), TABLE).await?;
        tables.insert(
            resource,
            table.get("columnDefinitions").cloned().unwrap_or_default(),
        );
    }
    let mut bootstrap = Vec::new();
    for path in BOOTSTRAP {
        let list = get(path, "application/json").await?;
        let kind = list["kind"]
            .as_str()
            .unwrap_or_default()
            .trim_end_matches("List")
            .to_owned();
        for item in list["items"].as_array().into_iter().flatten() {
            bootstrap.push(anonymous(item, &kind, &list["apiVersion"]));
        }
    }
    let start = json!({
        "version": get("/version", "application/json").await?,
        "api": core, "apis": groups, "tables": tables, "bootstrap": bootstrap,
    });

    let index = get("/openapi/v3", "application/json").await?;
    let mut schemas: BTreeMap<String, Value> = BTreeMap::new();
    let mut documents = Map::new();
    for (name, entry) in index["paths"].as_object().into_iter().flatten() {
        let url = entry["serverRelativeURL"].as_str().unwrap_or_default();
        let mut document = get(url, "application/json").await?;
        share_schemas(&mut document, &mut schemas);
        documents.insert(name.clone(), document);
    }
    for (name, value) in [
        ("start", start),
        ("schemas", json!(schemas)),
        ("documents", json!(documents)),
    ] {
        fs::write(folder.join(format!("{name}.json")), serde_json::to_vec(&value)?)?;
    }
    Ok(())
}

/// Every resource that can be listed: its path across namespaces and its name `group/resource`.
fn listable(core: &Value, groups: &Value) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for group in [core, groups]
        .into_iter()
        .filter_map(|list| list["items"].as_array())
        .flatten()
    {
        let name = group["metadata"]["name"].as_str().unwrap_or_default();
        for version in group["versions"].as_array().into_iter().flatten() {
            let v = version["version"].as_str().unwrap_or_default();
            let root = if name.is_empty() {
                format!("/api/{v}")
            } else {
                format!("/apis/{name}/{v}")
            };
            for resource in version["resources"].as_array().into_iter().flatten() {
                if resource["verbs"]
                    .as_array()
                    .is_some_and(|verbs| verbs.contains(&json!("list")))
                {
                    let plural = resource["resource"].as_str().unwrap_or_default();
                    all.push((format!("{root}/{plural}"), format!("{name}/{v}/{plural}")));
                }
            }
        }
    }
    all
}

/// The object without the fields that each server sets anew.
fn anonymous(item: &Value, kind: &str, api_version: &Value) -> Value {
    let mut object = json!({"kind": kind, "apiVersion": api_version});
    for (key, value) in item.as_object().into_iter().flatten() {
        object[key] = value.clone();
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for field in ["uid", "resourceVersion", "creationTimestamp", "managedFields"] {
            metadata.shift_remove(field);
        }
    }
    object
}

/// Moves the document's schemas into the common set and leaves a null in their place. A schema that differs between
/// documents (two do) stays in its document.
fn share_schemas(document: &mut Value, schemas: &mut BTreeMap<String, Value>) {
    let Some(own) = document
        .pointer_mut("/components/schemas")
        .and_then(Value::as_object_mut)
    else {
        return;
    };
    for (name, schema) in own {
        let common = schemas.entry(name.clone()).or_insert_with(|| schema.clone());
        if common == schema {
            *schema = Value::Null;
        }
    }
}
