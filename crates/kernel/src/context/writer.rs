//! The write handle of a pass.

use std::fmt::Debug;

use kube::Resource;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::core::{ApiResource, DynamicObject, NamespaceResourceScope, ObjectMeta};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Parent, ReconcileContext, named};
use crate::apply::{self, Intent, ObjectChange, Observed, Takeover, Written, adopt_fields};
use crate::children::Children;
use crate::lease::Fence;
use crate::problem::{Cause, Problem};
use crate::watch::dependencies::{Key, KnownVersion, Reference, kind_key};

/// Writes children.
pub struct Writer {
    context: ReconcileContext,
    field_manager: String,
    fence: Fence,
}

impl Writer {
    /// A writer for one pass over one object.
    pub fn new(context: ReconcileContext, field_manager: String, fence: Fence) -> Self {
        Self {
            context,
            field_manager,
            fence,
        }
    }

    /// To be called before a write outside of Kubernetes: a replica that lost the Lease must not write.
    pub fn may_write(&self) -> Result<(), Problem> {
        self.fence
            .check()
            .map_err(|lost| Problem::transient("NotLeading", "another replica leads now").caused_by(lost))
    }

    /// The object that is reconciled.
    pub fn parent(&self) -> &Parent {
        &self.context.parent
    }

    /// The object's children of all cached kinds, including the effects of our writes.
    pub fn all_children(&self) -> Children {
        self.context.child_caches.children(&self.context.parent)
    }

    /// Carries out changes in their order and records each, so that after a failure the first part is known.
    pub async fn apply_all(
        &self,
        changes: impl IntoIterator<Item = ObjectChange, IntoIter: Send>,
        written: &mut Written,
    ) -> Result<(), Problem> {
        for change in changes {
            self.apply_change(change, written).await?;
        }
        Ok(())
    }

    /// Applies an object as [`crate::apply::decide`] has decided, for a caller that needs what the API server returned.
    pub async fn apply<K>(&self, intent: &Intent) -> Result<K, Problem>
    where
        K: Resource + Clone + DeserializeOwned + Debug,
    {
        let unreadable = |error| {
            let message = format!("{} {} could not be read", intent.kind(), intent.name());
            Problem::human("UnreadableAnswer", message).caused_by(error)
        };
        self.put(intent).await?.try_parse().map_err(unreadable)
    }

    /// Deletes an object, if it is still the observed one.
    pub async fn delete<K: Resource<DynamicType = ()>>(&self, object: &ObjectMeta) -> Result<(), Problem> {
        self.remove(&Observed::new::<K>(object, &())).await
    }

    async fn apply_change(&self, change: ObjectChange, written: &mut Written) -> Result<(), Problem> {
        match change {
            ObjectChange::Apply(intent) => self.write(&intent, written).await?,
            ObjectChange::AdoptFields(intent, live) => {
                self.take_field_ownership(intent.resource(), &live).await?;
                self.write(&intent, written).await?;
            }
            ObjectChange::Create(intent, takeover) => match self.write(&intent, written).await {
                Ok(()) => {}
                // The name is in use, by another owner or by a child that the watch has not reported yet.
                Err(problem) if problem.is(Cause::Conflict) => self.verify(intent, takeover, written).await?,
                Err(problem) => return Err(problem),
            },
            ObjectChange::Verify(intent, takeover) => self.verify(intent, takeover, written).await?,
            ObjectChange::Merge(object, spec) => {
                let merged = self.merge(&object, &spec).await?;
                written.applied(&object.resource, &object.name, merged);
            }
            ObjectChange::Delete(object) => {
                self.remove(&object).await?;
                written.deleted(&object);
            }
        }
        Ok(())
    }

    /// The only place that applies an object.
    async fn put(&self, intent: &Intent) -> Result<DynamicObject, Problem> {
        let (kind, name) = (intent.resource(), intent.name());
        named(kind, None, name)?;
        let params = PatchParams {
            force: intent.replaces(),
            ..PatchParams::apply(&self.field_manager)
        };
        let written = self
            .context
            .dynamic(kind)
            .patch(name, &params, &Patch::Apply(intent.patch()))
            .await
            .map_err(|error| Problem::from(error).while_doing(&format!("{} {name}", kind.kind)))?;
        self.wrote(kind, &written.metadata);
        Ok(written)
    }

    /// Applies an object, and records that.
    async fn write(&self, intent: &Intent, written: &mut Written) -> Result<(), Problem> {
        let (kind, object) = (intent.resource(), self.put(intent).await?);
        match self.context.child_caches.of_kind(kind) {
            Some(cache) => {
                cache.wrote(object);
                written.cached(kind, intent.name());
            }
            None => written.applied(kind, intent.name(), object),
        }
        Ok(())
    }

    /// Compares with the live object, and writes if it is not as intended.
    async fn verify(&self, intent: Intent, takeover: Takeover, written: &mut Written) -> Result<(), Problem> {
        let kind = intent.resource().clone();
        named(&kind, None, intent.name())?;
        let live = self.context.dynamic(&kind).get_opt(intent.name()).await?;
        let (name, parent) = (intent.name().to_owned(), &self.context.parent);
        if let Some(intent) = apply::decide(intent, live.as_ref(), parent, takeover)? {
            if let Some(live) = live.as_ref().filter(|_| takeover == Takeover::AdoptFields) {
                self.take_field_ownership(&kind, &live.metadata).await?;
            }
            return self.write(&intent, written).await;
        }
        if let (Some(cache), Some(live)) = (self.context.child_caches.of_kind(&kind), live) {
            cache.wrote(live);
            cache.verified(&parent.key, &name);
        }
        Ok(())
    }

    /// Takes over the fields that a predecessor has set, so that the next write removes those that are not intended.
    async fn take_field_ownership(&self, kind: &ApiResource, live: &ObjectMeta) -> Result<(), Problem> {
        let entries = live.managed_fields.as_deref().unwrap_or_default();
        let Some(ours) = adopt_fields(entries, &self.field_manager) else {
            return Ok(());
        };
        let patch = serde_json::json!([
            { "op": "test", "path": "/metadata/resourceVersion", "value": live.resource_version },
            { "op": "replace", "path": "/metadata/managedFields", "value": ours },
        ]);
        let patch: json_patch::Patch = serde_json::from_value(patch).map_err(|error| {
            Problem::permanent("Unserializable", "a patch could not be serialized").caused_by(error)
        })?;
        let name = live.name.as_deref().unwrap_or_default();
        self.context
            .dynamic(kind)
            .patch(name, &self.plain_params(), &Patch::<()>::Json(patch))
            .await?;
        Ok(())
    }

    async fn merge(&self, object: &Observed, spec: &serde_json::Value) -> Result<DynamicObject, Problem> {
        let Observed { resource, name, uid } = object;
        named(resource, None, name)?;
        let fields = serde_json::json!({ "metadata": { "uid": uid }, "spec": spec });
        let merged = self
            .context
            .dynamic(resource)
            .patch(name, &self.plain_params(), &Patch::Merge(fields))
            .await
            .map_err(|error| Problem::from(error).while_doing(&format!("{} {name}", resource.kind)))?;
        self.wrote(resource, &merged.metadata);
        Ok(merged)
    }

    /// The only place that deletes an object. The cache learns of it at once, so that no pass deletes a child again before
    /// its watch has reported the deletion.
    async fn remove(&self, object: &Observed) -> Result<(), Problem> {
        let preconditions = Preconditions {
            uid: object.uid.clone(),
            resource_version: None,
        };
        let params = DeleteParams {
            preconditions: Some(preconditions),
            ..DeleteParams::default()
        };
        let api = self.context.dynamic(&object.resource);
        match api.delete(&object.name, &params).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            Err(error) => return Err(error.into()),
        }
        if let Some(cache) = self.context.child_caches.of_kind(&object.resource) {
            cache.deleted(&self.context.parent.key, object);
        }
        Ok(())
    }

    /// For patches other than server-side apply.
    fn plain_params(&self) -> PatchParams {
        PatchParams {
            field_manager: Some(self.field_manager.clone()),
            ..PatchParams::default()
        }
    }

    /// Applies a child's status. Fields of other managers stay.
    pub async fn apply_status<K>(&self, name: &str, status: &impl Serialize) -> Result<K, Problem>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        named(&ApiResource::erase::<K>(&()), None, name)?;
        let api = self.context.api::<K>();
        let body = serde_json::json!({
            "apiVersion": K::api_version(&()),
            "kind": K::kind(&()),
            "metadata": { "name": name, "namespace": self.context.parent.key.namespace },
            "status": status,
        });
        let params = PatchParams::apply(&self.field_manager).force();
        let written = api
            .patch_status(name, &params, &Patch::Apply(&body))
            .await
            .map_err(|error| {
                Problem::from(error).while_doing(&format!("status of {} {name}", K::kind(&())))
            })?;
        self.wrote(&ApiResource::erase::<K>(&()), written.meta());
        Ok(written)
    }

    /// Enqueues another object whose result depends on this one.
    pub fn wake<K: Resource<DynamicType = ()>>(&self, other: &Key) {
        self.context.enqueuers.enqueue::<K>(other);
    }

    /// Records the version of this write, so that its watch event does not wake the object.
    fn wrote(&self, kind: &ApiResource, meta: &ObjectMeta) {
        let what = Reference::of(&kind_key(kind), meta);
        self.context.dependencies.record_write(
            &self.context.parent.key,
            &what,
            KnownVersion::from_read(Some(meta)),
        );
    }
}
