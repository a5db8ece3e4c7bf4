//! The `HTTPRoute` of the Gateway API, as far as the operator writes it. A cluster need not serve the kind, so it is
//! not watched.

#![allow(missing_docs)]

use std::collections::BTreeMap;

use kube::CustomResource;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Whatever a route says.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize)]
#[kube(
    group = "gateway.networking.k8s.io",
    version = "v1",
    kind = "HTTPRoute",
    namespaced,
    schema = "disabled"
)]
pub struct HttpRouteSpec {
    #[serde(flatten)]
    pub fields: BTreeMap<String, Value>,
}
