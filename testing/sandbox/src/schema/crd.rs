//! `CustomResourceDefinitions`: from a CRD to the resources that it serves.

use serde_json::{Value, json};

use super::custom::Custom;
use crate::deprecation;
use crate::resource::Resource;
use crate::store::text;

/// The key of CRDs in the store.
pub(crate) const STORAGE: &str = "apiextensions.k8s.io/customresourcedefinitions";
/// The finalizer that keeps a CRD until its objects are deleted.
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// The resources of all served versions of a CRD.
pub(crate) fn resources(definition: &Value) -> Vec<Resource> {
    let spec = definition.get("spec").unwrap_or(&Value::Null);
    let names = spec.get("names").unwrap_or(&Value::Null);
    let (group, plural) = (text(spec, "/group"), text(names, "/plural"));
    let versions = spec
        .get("versions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    versions
        .filter(|version| version.get("served").and_then(Value::as_bool).unwrap_or_default())
        .map(|version| Resource {
            group: group.to_owned(),
            version: text(version, "/name").to_owned(),
            plural: plural.to_owned(),
            kind: text(names, "/kind").to_owned(),
            namespaced: text(spec, "/scope") == "Namespaced",
            discovery: entry(spec, names, version),
            storage: format!("{group}/{plural}").into(),
            warnings: deprecation::of_custom(spec, version).into_iter().collect(),
            custom: Some(Custom::new(spec, version)),
        })
        .collect()
}

fn entry(spec: &Value, names: &Value, version: &Value) -> Value {
    let kind = json!({"group": text(spec, "/group"), "version": text(version, "/name"), "kind": text(names, "/kind")});
    let mut entry = json!({
        "resource": text(names, "/plural"), "responseKind": kind, "scope": text(spec, "/scope"),
        "singularResource": text(names, "/singular"),
        "verbs": ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"],
    });
    for key in ["shortNames", "categories"] {
        if let Some(list) = names.get(key) {
            entry[key] = list.clone();
        }
    }
    let verbs = json!(["get", "patch", "update"]);
    let mut subresources = Vec::new();
    if version.pointer("/subresources/status").is_some() {
        subresources.push(json!({"subresource": "status", "responseKind": kind, "verbs": verbs}));
    }
    if version.pointer("/subresources/scale").is_some() {
        let scale = json!({"group": "autoscaling", "version": "v1", "kind": "Scale"});
        subresources.push(json!({"subresource": "scale", "responseKind": scale, "verbs": verbs}));
    }
    if !subresources.is_empty() {
        entry["subresources"] = json!(subresources);
    }
    entry
}
