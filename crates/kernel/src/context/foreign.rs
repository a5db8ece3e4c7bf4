//! `Reader` and `Writer` methods for third-party kinds.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::ListParams;
use kube::core::{ApiResource, DynamicObject};
use kube::{Api, ResourceExt as _};

use super::{Place, Reader, Writer};
use crate::apply::Intent;
use crate::foreign::{Foreign, Served, discover};
use crate::problem::Problem;

impl Place {
    fn foreign(&self, kind: &ApiResource) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), &self.subject.key.namespace, kind)
    }
}

impl Reader {
    /// How the cluster serves a kind, if it does. A change of this wakes the object.
    pub async fn served(&self, kind: &'static Foreign) -> Result<Option<Served>, Problem> {
        let (place, what) = (self.place(), kind.reference());
        if place.references.is_unchanged(&place.subject.key, &what)
            && let Some(known) = place.catalogue.last(kind)
        {
            self.note(what);
            return Ok(Some(known));
        }
        self.about_to_read(&what);
        let definitions: Api<CustomResourceDefinition> = Api::all(place.client.clone());
        let found = definitions.get_metadata_opt(&what.name).await?;
        self.have_read(&what, found.as_ref().map(|found| &found.metadata));
        if found.is_none() {
            place.catalogue.note(kind, None);
            return Ok(None);
        }
        let served = discover(&place.client, kind).await?;
        place.catalogue.note(kind, served.as_ref());
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
    pub async fn get_foreign(
        &self,
        kind: &ApiResource,
        name: &str,
    ) -> Result<Option<DynamicObject>, Problem> {
        let place = self.place();
        let namespace = Some(place.subject.key.namespace.as_str());
        self.remember(&place.foreign(kind), kind, namespace, name).await
    }

    /// Reads all objects of a kind in the same namespace; a change of any of them wakes the object.
    pub async fn list_foreign(&self, kind: &ApiResource) -> Result<Vec<DynamicObject>, Problem> {
        self.remember_all(&self.place().foreign(kind), kind, &ListParams::default())
            .await
    }
}

impl Writer {
    /// Applies an object as [`crate::apply::decide`] has decided.
    pub async fn apply_foreign(&self, kind: &ApiResource, intent: &Intent) -> Result<DynamicObject, Problem> {
        self.patch(&self.place().foreign(kind), kind, intent).await
    }

    /// Takes over the fields that a predecessor has set, so that the next write removes those that are not intended.
    pub async fn succeed_foreign(&self, kind: &ApiResource, live: &DynamicObject) -> Result<(), Problem> {
        self.succeed(&self.place().foreign(kind), live).await
    }

    /// Changes some fields of an object's spec, if it is still the observed object. All other fields stay with their
    /// managers.
    pub async fn merge_foreign(
        &self,
        kind: &ApiResource,
        object: &DynamicObject,
        spec: &serde_json::Value,
    ) -> Result<DynamicObject, Problem> {
        let fields = serde_json::json!({ "metadata": { "uid": object.metadata.uid }, "spec": spec });
        let name = object.name_any();
        self.merge(&self.place().foreign(kind), kind, &name, &fields)
            .await
    }

    /// Deletes an object, if it is still the observed one.
    pub async fn delete_foreign(&self, kind: &ApiResource, object: &DynamicObject) -> Result<(), Problem> {
        self.remove(&self.place().foreign(kind), &object.metadata).await
    }
}
