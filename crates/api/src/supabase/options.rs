//! Options that every component has.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Affinity, EnvVar, LocalObjectReference, PodSecurityContext, ResourceRequirements, SecurityContext,
    Toleration, TopologySpreadConstraint,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::loose::Loose;

/// Options that every component has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Options {
    /// Container image with its tag or digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub image: Option<String>,
    /// Number of pods. 0 stops the component.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 10))]
    pub replicas: u32,
    /// Resource requests and limits, instead of the operator's defaults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "resources")]
    pub resources: Option<ResourceRequirements>,
    /// Additional environment variables. They override variables with the same name that the operator sets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "environment")]
    pub extra_env: Vec<EnvVar>,
    /// Scales the number of pods with their load. `replicas` is then ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autoscaling: Option<Autoscaling>,
    /// Labels that a node must have to run the pods.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Taints that the pods tolerate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "list_as_in_a_pod")]
    pub tolerations: Vec<Loose<Toleration>>,
    /// Affinity of the pods, as in a pod spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "as_in_a_pod")]
    pub affinity: Option<Box<Loose<Affinity>>>,
    /// Topology spread constraints, as in a pod spec. A constraint without a selector selects the component's own pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "list_as_in_a_pod")]
    pub topology_spread_constraints: Vec<Loose<TopologySpreadConstraint>>,
    /// Security context of the container. Its fields override those of the restricted default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "as_in_a_pod")]
    pub security_context: Option<Box<Loose<SecurityContext>>>,
    /// Security context of the pod. Its fields override those of the restricted default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "as_in_a_pod")]
    pub pod_security_context: Option<Box<Loose<PodSecurityContext>>>,
    /// Secrets for a private image registry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "names")]
    pub image_pull_secrets: Vec<LocalObjectReference>,
    /// Additional annotations of the pods.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pod_annotations: BTreeMap<String, String>,
    /// Service account of the pods. Its token is never mounted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub service_account_name: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            image: None,
            replicas: one(),
            resources: None,
            extra_env: Vec::new(),
            autoscaling: None,
            node_selector: BTreeMap::new(),
            tolerations: Vec::new(),
            affinity: None,
            topology_spread_constraints: Vec::new(),
            security_context: None,
            pod_security_context: None,
            image_pull_secrets: Vec::new(),
            pod_annotations: BTreeMap::new(),
            service_account_name: None,
        }
    }
}

impl Options {
    /// The fields whose value does not fit Kubernetes' type, and why.
    pub fn misfits(&self) -> impl Iterator<Item = (&'static str, &str)> {
        fn all<'a, T: 'a>(
            field: &'static str,
            items: impl IntoIterator<Item = &'a Loose<T>>,
        ) -> Vec<(&'static str, &'a str)> {
            let misfits = items.into_iter().filter_map(Loose::misfit);
            misfits.map(|error| (field, error)).collect()
        }
        [
            all("tolerations", &self.tolerations),
            all("affinity", self.affinity.as_deref()),
            all("topologySpreadConstraints", &self.topology_spread_constraints),
            all("securityContext", self.security_context.as_deref()),
            all("podSecurityContext", self.pod_security_context.as_deref()),
        ]
        .into_iter()
        .flatten()
    }
}

fn one() -> u32 {
    1
}

// The complete schemas of these types, once for each component, would make the CRD too large for `kubectl apply`. The
// API server checks these values in the Deployment.

fn as_in_a_pod(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

fn list_as_in_a_pod(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array", "maxItems": 64,
        "items": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
    })
}

fn environment(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array", "maxItems": 256,
        "items": {
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": { "type": "string", "minLength": 1 },
                "value": { "type": "string" },
                "valueFrom": {
                    "type": "object",
                    "properties": {
                        "configMapKeyRef": key_ref(),
                        "secretKeyRef": key_ref(),
                        "fieldRef": text_fields(&["apiVersion", "fieldPath"], &["fieldPath"]),
                        "resourceFieldRef": resource_field(),
                        "fileKeyRef": file_key(),
                    },
                },
            },
        },
    })
}

fn text_fields(names: &[&str], required: &[&str]) -> Value {
    let text = |name: &&str| ((*name).to_owned(), json!({ "type": "string" }));
    let properties: serde_json::Map<String, Value> = names.iter().map(text).collect();
    json!({ "type": "object", "required": required, "properties": properties })
}

fn with_field(mut schema: Value, name: &str, field: Value) -> Value {
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.insert(name.into(), field);
    }
    schema
}

fn key_ref() -> Value {
    with_field(
        text_fields(&["name", "key"], &["key"]),
        "optional",
        json!({ "type": "boolean" }),
    )
}

fn file_key() -> Value {
    let names = ["volumeName", "path", "key"];
    with_field(
        text_fields(&names, &names),
        "optional",
        json!({ "type": "boolean" }),
    )
}

fn resource_field() -> Value {
    let fields = text_fields(&["containerName", "resource"], &["resource"]);
    with_field(fields, "divisor", json!({ "x-kubernetes-int-or-string": true }))
}

fn resources(_: &mut SchemaGenerator) -> Schema {
    let quantities =
        || json!({ "type": "object", "additionalProperties": { "x-kubernetes-int-or-string": true } });
    let mut schema = json_schema!({
        "type": "object",
        "properties": {
            "claims": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["name"],
                    "properties": { "name": { "type": "string" }, "request": { "type": "string" } },
                },
            },
        },
    });
    for kind in ["limits", "requests"] {
        if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            properties.insert(kind.into(), quantities());
        }
    }
    schema
}

fn names(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array", "maxItems": 16,
        "items": { "type": "object", "properties": { "name": { "type": "string" } } },
    })
}

/// A `HorizontalPodAutoscaler` for a component.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Autoscaling {
    /// Minimum number of pods.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 100))]
    pub min_replicas: u32,
    /// Maximum number of pods.
    #[schemars(range(min = 1, max = 100))]
    pub max_replicas: u32,
    /// Target CPU utilization, in percent of the request.
    #[serde(default = "eighty", rename = "targetCPUUtilizationPercentage")]
    #[schemars(range(min = 1, max = 100))]
    pub target_cpu_utilization_percentage: u32,
    /// Target memory utilization, in percent of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub target_memory_utilization_percentage: Option<u32>,
}

fn eighty() -> u32 {
    80
}
