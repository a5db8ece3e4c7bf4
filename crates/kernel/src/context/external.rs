//! `Reader` and `Writer` methods for third-party kinds.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::ListParams;
use kube::core::{ApiResource, DynamicObject};
use kube::{Api, ResourceExt as _};

use super::{Reader, Writer};
use crate::apply::Intent;
use crate::external::{ExternalKind, ServedKind, discover};
use crate::problem::Problem;

impl Reader {
    /// How the cluster serves a kind, if it does. A change of this wakes the object.
    pub async fn served(&self, kind: &'static ExternalKind) -> Result<Option<ServedKind>, Problem> {
        let (context, what) = (self.context(), kind.reference());
        if context.dependencies.is_unchanged(&context.parent.key, &what)
            && let Some(known) = context.discovery.last(kind)
        {
            self.note(what);
            return Ok(Some(known));
        }
        self.begin_read(&what);
        let definitions: Api<CustomResourceDefinition> = Api::all(context.client.clone());
        let found = definitions.get_metadata_opt(&what.name).await?;
        self.finish_read(&what, found.as_ref().map(|found| &found.metadata));
        if found.is_none() {
            context.discovery.note(kind, None);
            return Ok(None);
        }
        let served = discover(&context.client, kind).await?;
        context.discovery.note(kind, served.as_ref());
        let unserved = || {
            let message = format!(
                "the cluster has the CRD {} but does not serve any of its versions {} yet",
                what.name,
                kind.versions.join(", ")
            );
            Problem::transient("KindNotServed", message)
        };
        served.ok_or_else(unserved).map(Some)
    }

    /// Reads an object in the same namespace.
    pub async fn get_external(
        &self,
        kind: &ApiResource,
        name: &str,
    ) -> Result<Option<DynamicObject>, Problem> {
        let context = self.context();
        let namespace = Some(context.parent.key.namespace.as_str());
        self.remember(&context.dynamic(kind), kind, namespace, name).await
    }

    /// Reads all objects of a kind in the same namespace; a change of any of them wakes the object.
    pub async fn list_external(&self, kind: &ApiResource) -> Result<Vec<DynamicObject>, Problem> {
        self.remember_all(&self.context().dynamic(kind), kind, &ListParams::default())
            .await
    }
}

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
