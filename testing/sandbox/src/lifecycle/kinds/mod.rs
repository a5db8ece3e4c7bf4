//! Special behaviour of some built-in kinds on creation and change.

mod numbers;
mod pod;
mod service;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};

pub(crate) use numbers::ServiceNumbers;

use crate::error::FieldError;
use crate::resource::Resource;
use crate::schema::decode;
use crate::store::{Object, Store, text};

/// Protects a claim while a pod uses it.
pub(crate) const CLAIM_PROTECTION: &str = "kubernetes.io/pvc-protection";

/// After an object is read from a request.
pub(crate) fn read(resource: &Resource, object: &mut Value) {
    match &*resource.storage {
        "/secrets" => string_data(object),
        "rbac.authorization.k8s.io/roles" | "rbac.authorization.k8s.io/clusterroles"
            if object.get("rules").is_none() =>
        {
            object["rules"] = Value::Null;
        }
        "/namespaces" => {
            let name = text(object, "/metadata/name").to_owned();
            if !name.is_empty() {
                object["metadata"]["labels"]["kubernetes.io/metadata.name"] = json!(name);
            }
        }
        _ => {}
    }
}

/// Before mutating admission.
pub(crate) fn begin(resource: &Resource, object: &mut Value) {
    match &*resource.storage {
        "/namespaces" => {
            let name = text(object, "/metadata/name").to_owned();
            object["metadata"]["labels"]["kubernetes.io/metadata.name"] = json!(name);
            inner_finalizer(object);
            object["status"] = json!({"phase": "Active"});
        }
        "/pods" => {
            object["status"] = json!({"phase": "Pending", "qosClass": pod::quality(object)});
            pod::tolerations(object);
        }
        "/persistentvolumeclaims" => {
            object["status"] = json!({"phase": "Pending"});
            finalizer(object, CLAIM_PROTECTION);
        }
        "/persistentvolumes" => object["status"] = json!({"phase": "Pending"}),
        "/services" | "networking.k8s.io/ingresses" => object["status"] = json!({"loadBalancer": {}}),
        "batch/jobs" => job(object),
        "apps/deployments" | "batch/cronjobs" | "/resourcequotas" => object["status"] = json!({}),
        "apps/replicasets" | "/replicationcontrollers" => object["status"] = json!({"replicas": 0}),
        "apps/statefulsets" => object["status"] = json!({"replicas": 0, "availableReplicas": 0}),
        "apps/daemonsets" => {
            object["status"] = json!({
                "currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0,
            });
        }
        "policy/poddisruptionbudgets" => {
            object["status"] =
                json!({"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0});
        }
        "apiextensions.k8s.io/customresourcedefinitions" => {
            let stored = object
                .pointer("/spec/versions")
                .and_then(Value::as_array)
                .into_iter()
                .flatten();
            let stored: Vec<Value> = stored
                .filter(|version| {
                    version
                        .get("storage")
                        .and_then(Value::as_bool)
                        .unwrap_or_default()
                })
                .filter_map(|version| version.get("name").cloned())
                .take(1)
                .collect();
            object["status"] = json!({
                "conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": stored,
            });
        }
        _ => {}
    }
}

/// After mutating admission.
pub(crate) fn complete(numbers: &ServiceNumbers, resource: &Resource, object: &mut Value) {
    if &*resource.storage == "/services" {
        service::complete(numbers, object);
    }
}

/// The errors for an address and for ports that another Service already has.
pub(crate) fn taken_address(store: &Store, resource: &Resource, object: &Value) -> Vec<FieldError> {
    if &*resource.storage == "/services" {
        let address = service::taken_address(store, object);
        address
            .into_iter()
            .chain(service::taken_ports(store, object))
            .collect()
    } else {
        Vec::new()
    }
}

/// Fields that an update does not store, or keeps implicitly.
pub(crate) fn keep(numbers: &ServiceNumbers, resource: &Resource, old: &Value, new: &mut Value) {
    match &*resource.storage {
        "/services" => {
            let ingress = new
                .pointer_mut("/status/loadBalancer/ingress")
                .and_then(Value::as_array_mut);
            for address in ingress
                .into_iter()
                .flatten()
                .filter(|address| address.get("ip").is_some())
            {
                if address.get("ipMode").is_none() {
                    address["ipMode"] = json!("VIP");
                }
            }
            service::change_of_type(old, new);
            for key in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                let kept = old.pointer(&format!("/spec/{key}")).cloned();
                if let (Some(kept), Some(Value::Object(spec))) = (kept, new.get_mut("spec"))
                    && !spec.contains_key(key)
                    && spec.get("type").and_then(Value::as_str) != Some("ExternalName")
                {
                    spec.insert(key.to_owned(), kept);
                }
            }
            service::complete(numbers, new);
        }
        "/namespaces" => {
            if let Some(finalizers) = old.pointer("/spec/finalizers").cloned() {
                new["spec"]["finalizers"] = finalizers;
            }
        }
        "apiextensions.k8s.io/customresourcedefinitions" => stored_version(new),
        "batch/jobs" if new.pointer("/spec/selector").is_none() => {
            new["spec"]["selector"] = old["spec"]["selector"].clone();
        }
        _ => {}
    }
}

/// The storage version becomes one of the stored versions.
fn stored_version(definition: &mut Value) {
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
    let mut stored = versions
        .into_iter()
        .flatten()
        .filter(|version| version["storage"] == json!(true));
    let Some(name) = stored.next().map(|version| version["name"].clone()) else {
        return;
    };
    if let Some(Value::Array(known)) = definition.pointer_mut("/status/storedVersions")
        && !known.contains(&name)
    {
        known.push(name);
    }
}

/// The grace period of a deleted object. Only scheduled pods have one.
pub(crate) fn grace_seconds(resource: &Resource, object: &Object, asked: Option<i64>) -> i64 {
    if &*resource.storage != "/pods" || object.text("/spec/nodeName").is_empty() {
        return 0;
    }
    if matches!(object.text("/status/phase"), "Succeeded" | "Failed") {
        return 0;
    }
    let own = object
        .value()
        .pointer("/spec/terminationGracePeriodSeconds")
        .and_then(Value::as_i64);
    asked.or(own).unwrap_or(30).max(0)
}

/// `stringData` is write-only.
fn string_data(object: &mut Value) {
    let Some(map) = object.as_object_mut() else { return };
    let Some(Value::Object(plain)) = map.shift_remove("stringData") else {
        return;
    };
    let data = map.entry("data").or_insert_with(|| json!({}));
    for (key, value) in plain {
        data[key] = json!(STANDARD.encode(value.as_str().unwrap_or_default()));
    }
    if let Some(data) = data.as_object_mut() {
        decode::sort(data);
    }
}

fn finalizer(object: &mut Value, name: &str) {
    match object.pointer_mut("/metadata/finalizers") {
        Some(Value::Array(list)) if !list.contains(&json!(name)) => list.push(json!(name)),
        Some(Value::Array(_)) => {}
        _ => object["metadata"]["finalizers"] = json!([name]),
    }
}

/// The finalizers in the spec of a namespace: those of others, and always Kubernetes' own.
fn inner_finalizer(namespace: &mut Value) {
    let given = namespace.pointer("/spec/finalizers").and_then(Value::as_array);
    let mut list = given.cloned().unwrap_or_default();
    if !list.contains(&json!("kubernetes")) {
        list.push(json!("kubernetes"));
    }
    namespace["spec"] = json!({"finalizers": list});
}

fn absent(map: &mut Map<String, Value>, key: &str, value: Value) {
    if !map.contains_key(key) {
        map.insert(key.to_owned(), value);
    }
}

/// A Job selects its pods by its own uid.
fn job(object: &mut Value) {
    object["status"] = json!({});
    if object.pointer("/spec/manualSelector") == Some(&json!(true)) {
        return;
    }
    let (uid, name) = (
        text(object, "/metadata/uid").to_owned(),
        text(object, "/metadata/name").to_owned(),
    );
    object["spec"]["selector"] = json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}});
    let template = &mut object["spec"]["template"]["metadata"];
    if !template.is_object() {
        *template = json!({});
    }
    let labels = &mut template["labels"];
    for (key, value) in [
        ("batch.kubernetes.io/controller-uid", &uid),
        ("batch.kubernetes.io/job-name", &name),
        ("controller-uid", &uid),
        ("job-name", &name),
    ] {
        labels[key] = json!(value);
    }
    if object.pointer("/metadata/labels").is_none() {
        object["metadata"]["labels"] = object["spec"]["template"]["metadata"]["labels"].clone();
    }
}
