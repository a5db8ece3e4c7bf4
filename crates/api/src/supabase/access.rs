//! How a project is reached, and by whom.

use std::collections::BTreeMap;

use k8s_openapi::api::networking::v1::NetworkPolicyPeer;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::loose::Loose;

/// An Ingress in front of the gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IngressOptions {
    /// Whether there is one.
    #[serde(default)]
    pub enabled: bool,
    /// The class; the cluster's default one when it is not stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class_name: Option<String>,
    /// Annotations for the controller of the class.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// The host name; every one when it is not stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub host: Option<String>,
    /// The Secret with the certificate; without it there is no TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub tls_secret_name: Option<String>,
}

/// An `HTTPRoute` of the Gateway API in front of the gateway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Gateway {
    /// The Gateways that the route is attached to.
    #[schemars(length(min = 1, max = 16))]
    pub parent_refs: Vec<ParentRef>,
    /// The host names; every one of the listener when none is stated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub hostnames: Vec<String>,
    /// Whether people reach the route by `https`: what the project's URL begins with.
    #[serde(default = "yes")]
    pub tls: bool,
    /// Annotations of the route.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

fn yes() -> bool {
    true
}

/// A Gateway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ParentRef {
    /// Name of the Gateway.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Its namespace; the project's own by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub namespace: Option<String>,
    /// One of its listeners; all by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub section_name: Option<String>,
}

/// Who may reach the project's pods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkRules {
    /// Who may reach the gateway; everybody when nobody is named.
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

/// How many pods of a component may be away on purpose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DisruptionBudget {
    /// At most so many at once.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 100))]
    pub max_unavailable: u32,
}

fn one() -> u32 {
    1
}
