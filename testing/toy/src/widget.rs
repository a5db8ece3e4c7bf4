//! The kind of the toy controller.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, CustomResourceExt as _, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stanchion_kernel::condition;
use stanchion_kernel::status::Status;

/// The spec of a widget.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "test.stanchion.dev",
    version = "v1",
    kind = "Widget",
    namespaced,
    status = "WidgetStatus",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct WidgetSpec {
    /// Zero is invalid.
    pub size: u32,
    /// A Secret whose `password` the thing in the world gets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<String>,
    /// Makes the child immutable.
    #[serde(default)]
    pub frozen: bool,
    /// Nothing is touched while this is set.
    #[serde(default)]
    pub suspend: bool,
    /// Requeue interval in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<u64>,
    /// Breaks one of the steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boom: Option<Boom>,
}

/// The step that panics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Boom {
    /// The step of this name.
    Validate,
    /// The step of this name.
    Observe,
    /// The step of this name.
    Plan,
    /// The step of this name.
    Apply,
    /// The step of this name.
    Report,
}

/// The status of a widget.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct WidgetStatus {
    /// The generation that the conditions describe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The size of the thing in the world.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u32>,
    /// Never written by the toy: a field of a predecessor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub legacy: Option<String>,
    /// The conditions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

impl Status for WidgetStatus {
    fn conditions(&self) -> &[Condition] {
        &self.conditions
    }

    fn conditions_mut(&mut self) -> &mut Vec<Condition> {
        &mut self.conditions
    }

    fn set_observed_generation(&mut self, generation: Option<i64>) {
        self.observed_generation = generation;
    }
}

impl Widget {
    /// The condition of this type.
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        condition::find(&self.status.as_ref()?.conditions, kind)
    }

    /// Whether it is ready for its current spec.
    pub fn is_ready(&self) -> bool {
        let conditions = self.status.as_ref().map(|status| status.conditions.as_slice());
        condition::is_true(conditions.unwrap_or_default(), "Ready", self.metadata.generation)
    }

    /// Whether it is not ready for this reason, for its current spec.
    pub fn fails_with(&self, reason: &str) -> bool {
        self.condition("Ready").is_some_and(|ready| {
            ready.status == "False"
                && ready.reason == reason
                && ready.observed_generation == self.metadata.generation
        })
    }
}

/// The CRD. Its schema accepts any `size`, as an old schema might, and any `status.legacy`, as a newer one might.
pub fn crd() -> CustomResourceDefinition {
    let mut crd = Widget::crd();
    let schema = crd.spec.versions[0].schema.as_mut().unwrap();
    let spec = schema
        .open_api_v3_schema
        .as_mut()
        .unwrap()
        .properties
        .as_mut()
        .unwrap();
    let fields = spec.get_mut("spec").unwrap().properties.as_mut().unwrap();
    let anything = JSONSchemaProps {
        x_kubernetes_int_or_string: Some(true),
        ..JSONSchemaProps::default()
    };
    fields.insert("size".into(), anything.clone());
    let status = spec.get_mut("status").unwrap().properties.as_mut().unwrap();
    status.insert("legacy".into(), anything);
    crd
}
