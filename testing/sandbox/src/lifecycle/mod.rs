//! The lifecycle of objects: fields that the server sets, keeps and counts, and special kinds.

mod check;
mod immutable;
mod kinds;
mod names;
mod rules;

use serde_json::{Map, Value, json};

pub(crate) use check::check;
pub(crate) use kinds::{CLAIM_PROTECTION, ServiceNumbers, complete, grace_seconds, read, taken_address};
pub(crate) use names::{
    check_metadata, finalizer_warnings, inner_finalizer_errors, is_dns_1035_label, is_label_key,
};

use crate::error::FieldError;
use crate::handlers::Endpoint;
use crate::resource::Resource;
use crate::server::Server;
use crate::store::text;

/// Built-in kinds with a generation.
const COUNTED: [&str; 22] = [
    "/pods",
    "/replicationcontrollers",
    "apps/daemonsets",
    "apps/deployments",
    "apps/replicasets",
    "apps/statefulsets",
    "batch/cronjobs",
    "batch/jobs",
    "networking.k8s.io/ingresses",
    "networking.k8s.io/ingressclasses",
    "networking.k8s.io/networkpolicies",
    "policy/poddisruptionbudgets",
    "apiextensions.k8s.io/customresourcedefinitions",
    "discovery.k8s.io/endpointslices",
    "admissionregistration.k8s.io/mutatingwebhookconfigurations",
    "admissionregistration.k8s.io/validatingwebhookconfigurations",
    "admissionregistration.k8s.io/validatingadmissionpolicies",
    "admissionregistration.k8s.io/validatingadmissionpolicybindings",
    "scheduling.k8s.io/priorityclasses",
    "flowcontrol.apiserver.k8s.io/flowschemas",
    "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations",
    "storage.k8s.io/volumeattachments",
];

/// Built-in kinds whose updates need a resourceVersion.
const VERSIONED: [&str; 3] = [
    "apiextensions.k8s.io/customresourcedefinitions",
    "apiregistration.k8s.io/apiservices",
    "coordination.k8s.io/leases",
];

/// Kinds whose update creates a missing object.
const CREATED_BY_UPDATE: [&str; 9] = [
    "/endpoints",
    "/events",
    "/limitranges",
    "/services",
    "coordination.k8s.io/leases",
    "rbac.authorization.k8s.io/clusterrolebindings",
    "rbac.authorization.k8s.io/clusterroles",
    "rbac.authorization.k8s.io/rolebindings",
    "rbac.authorization.k8s.io/roles",
];

/// Built-in kinds whose deletion returns the object.
const SHOWN_WHEN_DELETED: [&str; 5] = [
    "/pods",
    "/services",
    "/persistentvolumeclaims",
    "/persistentvolumes",
    "/serviceaccounts",
];

/// Metadata that only the server writes.
const SERVER_METADATA: [&str; 6] = [
    "uid",
    "selfLink",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
];

const DEPLOYMENTS: &str = "apps/deployments";

fn counts_generations(resource: &Resource) -> bool {
    resource.custom.is_some() || COUNTED.contains(&&*resource.storage)
}

/// Whether an update without a resourceVersion is rejected.
pub(crate) fn needs_version(resource: &Resource) -> bool {
    VERSIONED.contains(&&*resource.storage)
}

/// Whether an update of a missing object creates it.
pub(crate) fn is_created_by_update(resource: &Resource) -> bool {
    CREATED_BY_UPDATE.contains(&&*resource.storage)
}

/// Whether a deletion returns the object instead of a status.
pub(crate) fn returns_deleted(resource: &Resource) -> bool {
    SHOWN_WHEN_DELETED.contains(&&*resource.storage)
}

/// The default propagation policy.
pub(crate) fn default_propagation(resource: &Resource) -> &'static str {
    match &*resource.storage {
        "batch/jobs" | "/replicationcontrollers" => "Orphan",
        _ => "Background",
    }
}

/// The original warns about this surprising default.
pub(crate) fn delete_warning(resource: &Resource, unspecified: bool) -> Vec<String> {
    let warn = unspecified && &*resource.storage == "batch/jobs";
    let text = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning";
    if warn { vec![text.to_owned()] } else { Vec::new() }
}

/// The fields that the main endpoint does not change.
pub(crate) fn ignored_on_main(resource: &Resource) -> &'static [&'static str] {
    if resource.has_status() { &["status"] } else { &[] }
}

fn metadata(object: &mut Value) -> Option<&mut Map<String, Value>> {
    object.get_mut("metadata").and_then(Value::as_object_mut)
}

/// Sets the identity of a new object; clients cannot set its status.
pub(crate) fn begin(server: &Server, resource: &Resource, object: &mut Value) {
    if let Some(metadata) = metadata(object) {
        for field in [
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "selfLink",
            "resourceVersion",
        ] {
            metadata.shift_remove(field);
        }
        metadata.insert("uid".to_owned(), json!(server.clock.uid()));
        metadata.insert("creationTimestamp".to_owned(), json!(server.clock.seconds()));
        if counts_generations(resource) {
            metadata.insert("generation".to_owned(), json!(1));
        }
    }
    if resource.has_status()
        && let Some(map) = object.as_object_mut()
    {
        map.shift_remove("status");
    }
    if let Some(custom) = &resource.custom {
        // A status with a default in the schema exists from the start.
        custom.normalize(object);
    }
    kinds::begin(resource, object);
}

/// An update cannot delete: its deletion fields must be unset or unchanged.
pub(crate) fn undeletable(old: &Value, new: &Value) -> Vec<FieldError> {
    let fields = ["deletionTimestamp", "deletionGracePeriodSeconds"];
    let errors = fields.into_iter().filter_map(|field| {
        let at = |object: &'_ Value| object.get("metadata")?.get(field).cloned();
        let given = at(new).filter(|value| !value.is_null())?;
        let field = format!("metadata.{field}");
        (Some(&given) != at(old).as_ref()).then(|| FieldError::invalid(field, &given, "field is immutable"))
    });
    // The original reports it twice.
    errors.flat_map(|error| [error.clone(), error]).collect()
}

/// An update keeps the fields that its endpoint may not change.
pub(crate) fn keep(
    numbers: &ServiceNumbers,
    resource: &Resource,
    endpoint: Endpoint,
    old: &Value,
    new: &mut Value,
) {
    let fields = SERVER_METADATA;
    for field in fields {
        let kept = old
            .get("metadata")
            .and_then(|metadata| metadata.get(field))
            .cloned();
        if let Some(metadata) = metadata(new) {
            match kept {
                Some(value) => metadata.insert(field.to_owned(), value),
                None => metadata.shift_remove(field),
            };
        }
    }
    match endpoint {
        Endpoint::Main | Endpoint::Scale if resource.has_status() => copy(old, new, "status"),
        Endpoint::Main | Endpoint::Scale => {}
        Endpoint::Status if resource.custom.is_some() => {
            let (status, fields) = (
                new.get("status").cloned(),
                new.pointer("/metadata/managedFields").cloned(),
            );
            *new = old.clone();
            if let Some(map) = new.as_object_mut() {
                match status {
                    Some(status) => map.insert("status".to_owned(), status),
                    None => map.shift_remove("status"),
                };
            }
            if let (Some(metadata), Some(fields)) = (metadata(new), fields) {
                metadata.insert("managedFields".to_owned(), fields);
            }
        }
        Endpoint::Status => {
            let others: Vec<String> = old
                .as_object()
                .into_iter()
                .chain(new.as_object())
                .flatten()
                .map(|(key, _)| key.clone())
                .filter(|key| !matches!(key.as_str(), "status" | "metadata" | "kind" | "apiVersion"))
                .collect();
            for key in others {
                copy(old, new, &key);
            }
            if &*resource.storage == DEPLOYMENTS
                && let (Some(old), Some(new)) = (old.get("metadata"), new.get_mut("metadata"))
            {
                copy(old, new, "labels");
            }
        }
    }
    kinds::keep(numbers, resource, old, new);
}

fn copy(from: &Value, to: &mut Value, key: &str) {
    if let Some(map) = to.as_object_mut() {
        match from.get(key) {
            Some(value) => map.insert(key.to_owned(), value.clone()),
            None => map.shift_remove(key),
        };
    }
}

/// Increases the generation on every change of the desired state.
pub(crate) fn change(resource: &Resource, endpoint: Endpoint, old: &Value, new: &mut Value) {
    if endpoint == Endpoint::Status || !counts_generations(resource) {
        return;
    }
    let wanted = |object: &Value| {
        let mut object = object.as_object().cloned().unwrap_or_default();
        for key in ["metadata", "apiVersion", "kind"] {
            object.shift_remove(key);
        }
        if resource.has_status() || resource.custom.is_none() {
            object.shift_remove("status");
        }
        if &*resource.storage == "/pods"
            && let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut)
        {
            // The node is not part of the desired state.
            spec.shift_remove("nodeName");
        }
        object
    };
    // Annotations of a Deployment are copied to its ReplicaSets.
    let annotated =
        &*resource.storage == DEPLOYMENTS && old["metadata"]["annotations"] != new["metadata"]["annotations"];
    if annotated || wanted(old) != wanted(new) {
        let generation = old
            .pointer("/metadata/generation")
            .and_then(Value::as_i64)
            .unwrap_or_default();
        new["metadata"]["generation"] = json!(generation + 1);
    }
}

/// Namespaces wait for the deletion of their content.
pub(crate) fn has_inner_finalizers(resource: &Resource, object: &Value) -> bool {
    &*resource.storage == "/namespaces"
        && object
            .pointer("/spec/finalizers")
            .and_then(Value::as_array)
            .is_some_and(|list| !list.is_empty())
}

/// Whether an object that is being deleted has no finalizers left.
pub(crate) fn is_finished(resource: &Resource, object: &Value) -> bool {
    let finalizers = object.pointer("/metadata/finalizers").and_then(Value::as_array);
    let grace = object
        .pointer("/metadata/deletionGracePeriodSeconds")
        .and_then(Value::as_i64)
        .unwrap_or_default();
    !text(object, "/metadata/deletionTimestamp").is_empty()
        && finalizers.is_none_or(Vec::is_empty)
        && !has_inner_finalizers(resource, object)
        && (grace == 0 || &*resource.storage != "/pods")
}
