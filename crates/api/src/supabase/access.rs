//! Network access to a project.

use std::collections::BTreeMap;

use k8s_openapi::api::networking::v1::NetworkPolicyPeer;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::loose::Loose;

/// An Ingress for the API gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IngressOptions {
    /// Whether the operator creates an Ingress.
    #[serde(default)]
    pub enabled: bool,
    /// Ingress class. Defaults to the cluster's default class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class_name: Option<String>,
    /// Annotations for the ingress controller.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Host name. Without it, the Ingress accepts every host name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub host: Option<String>,
    /// The Secret with the TLS certificate. Without it, the Ingress does not use TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub tls_secret_name: Option<String>,
}

/// An `HTTPRoute` of the Gateway API for the API gateway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Gateway {
    /// The Gateways that the route attaches to.
    #[schemars(length(min = 1, max = 16))]
    pub parent_refs: Vec<ParentRef>,
    /// Host names. Without them, the route accepts every host name of the listener.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub hostnames: Vec<String>,
    /// Whether users reach the route with `https`. The project's URL begins accordingly.
    #[serde(default = "yes")]
    pub tls: bool,
    /// Annotations of the route.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

fn yes() -> bool {
    true
}

/// A reference to a Gateway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ParentRef {
    /// Name of the Gateway.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Namespace of the Gateway. Defaults to the project's namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub namespace: Option<String>,
    /// A listener of the Gateway. Defaults to all listeners.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub section_name: Option<String>,
}

/// Rules for network access to the project's pods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkRules {
    /// Peers that may connect to the API gateway. Without any, every peer may connect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "peers")]
    pub from: Vec<Loose<NetworkPolicyPeer>>,
}

fn peers(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array", "maxItems": 64,
        "items": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
    })
}

/// Limit for voluntary disruptions of a component's pods.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DisruptionBudget {
    /// Maximum number of pods that may be unavailable at the same time.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 100))]
    pub max_unavailable: u32,
}

fn one() -> u32 {
    1
}
