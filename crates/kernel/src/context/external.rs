//! `Writer` methods for third-party kinds.

use kube::ResourceExt as _;
use kube::core::{ApiResource, DynamicObject};

use super::Writer;
use crate::apply::Intent;
use crate::problem::Problem;

impl Writer {
    /// Applies an object as [`crate::apply::decide`] has decided.
    pub async fn apply_external(
        &self,
        kind: &ApiResource,
        intent: &Intent,
    ) -> Result<DynamicObject, Problem> {
        self.patch(&self.context().dynamic(kind), kind, intent).await
    }

    /// Takes over the fields that a predecessor has set, so that the next write removes those that are not intended.
    pub async fn take_external_field_ownership(
        &self,
        kind: &ApiResource,
        live: &DynamicObject,
    ) -> Result<(), Problem> {
        self.take_field_ownership(&self.context().dynamic(kind), &live.metadata)
            .await
    }

    /// Changes some fields of an object's spec, if it is still the observed object. All other fields stay with their
    /// managers.
    pub async fn merge_external(
        &self,
        kind: &ApiResource,
        object: &DynamicObject,
        spec: &serde_json::Value,
    ) -> Result<DynamicObject, Problem> {
        let fields = serde_json::json!({ "metadata": { "uid": object.metadata.uid }, "spec": spec });
        let name = object.name_any();
        self.merge(&self.context().dynamic(kind), kind, &name, &fields)
            .await
    }

    /// Deletes an object, if it is still the observed one.
    pub async fn delete_external(&self, kind: &ApiResource, object: &DynamicObject) -> Result<(), Problem> {
        self.remove(&self.context().dynamic(kind), &object.metadata).await
    }
}
