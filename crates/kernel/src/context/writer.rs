//! The write handle of a pass.

use std::fmt::Debug;

use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::core::{ApiResource, NamespaceResourceScope, ObjectMeta};
use kube::{Api, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Parent, ReconcileContext, named};
use crate::apply::{self, Intent, ObjectChange, Takeover, Written, adopt_fields};
use crate::children::{Child, ChildChange, ChildKind, Children};
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

    /// Carries out changes in their order and records each, so that after a failure the first part is known.
    pub async fn apply_all(
        &self,
        changes: impl IntoIterator<Item = ObjectChange, IntoIter: Send>,
        written: &mut Written,
    ) -> Result<(), Problem> {
        for change in changes {
            self.carry_out(change, written).await?;
        }
        Ok(())
    }

    async fn carry_out(&self, change: ObjectChange, written: &mut Written) -> Result<(), Problem> {
        match change {
            ObjectChange::Apply(intent) => self.put(&intent, written).await,
            ObjectChange::AdoptFields(intent, live) => {
                let api = self.context.dynamic(intent.resource());
                self.take_field_ownership(&api, &live).await?;
                self.put(&intent, written).await
            }
            ObjectChange::Create(intent, takeover) => match self.put(&intent, written).await {
                // The name is in use, by another owner or by a child that the watch has not reported yet.
                Err(problem) if problem.is(Cause::Conflict) => {
                    self.verify_live(intent, takeover, written).await
                }
                done => done,
            },
            ObjectChange::Verify(intent, takeover) => self.verify_live(intent, takeover, written).await,
            ObjectChange::Merge(object, spec) => {
                let api = self.context.dynamic(&object.resource);
                let fields = serde_json::json!({ "metadata": { "uid": object.uid }, "spec": spec });
                let merged = self.merge(&api, &object.resource, &object.name, &fields).await?;
                written.applied(&object.resource, merged);
                Ok(())
            }
            ObjectChange::Delete(object) => {
                let api = self.context.dynamic(&object.resource);
                let meta = ObjectMeta {
                    name: Some(object.name.clone()),
                    uid: object.uid.clone(),
                    ..ObjectMeta::default()
                };
                self.remove(&api, &meta).await?;
                written.deleted(&object);
                Ok(())
            }
        }
    }

    async fn put(&self, intent: &Intent, written: &mut Written) -> Result<(), Problem> {
        let kind = intent.resource();
        let object = self.patch(&self.context.dynamic(kind), kind, intent).await?;
        if let Some(cache) = self.context.child_caches.of_kind(kind) {
            cache.wrote(&object);
        }
        written.applied(kind, object);
        Ok(())
    }

    /// Compares with the live object, and writes if it is not as intended.
    async fn verify_live(
        &self,
        intent: Intent,
        takeover: Takeover,
        written: &mut Written,
    ) -> Result<(), Problem> {
        let kind = intent.resource().clone();
        named(&kind, None, intent.name())?;
        let api = self.context.dynamic(&kind);
        let live = api.get_opt(intent.name()).await?;
        let (name, parent) = (intent.name().to_owned(), &self.context.parent);
        if let Some(intent) = apply::decide(intent, live.as_ref(), parent, takeover)? {
            if let Some(live) = live.as_ref().filter(|_| takeover == Takeover::AdoptFields) {
                self.take_field_ownership(&api, &live.metadata).await?;
            }
            return self.put(&intent, written).await;
        }
        if let (Some(cache), Some(live)) = (self.context.child_caches.of_kind(&kind), live) {
            cache.wrote(&live);
            cache.verified(&parent.key, &name);
        }
        Ok(())
    }

    /// Applies a child as [`crate::apply::decide`] has decided.
    pub async fn apply<K>(&self, intent: &Intent) -> Result<K, Problem>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + Serialize
            + Debug,
    {
        self.patch(&self.context.api::<K>(), &ApiResource::erase::<K>(&()), intent)
            .await
    }

    pub(super) async fn patch<K>(
        &self,
        api: &Api<K>,
        kind: &ApiResource,
        intent: &Intent,
    ) -> Result<K, Problem>
    where
        K: Resource + Clone + DeserializeOwned + Debug,
    {
        named(kind, None, intent.name())?;
        let params = PatchParams {
            force: intent.replaces(),
            ..PatchParams::apply(&self.field_manager)
        };
        let written = api
            .patch(intent.name(), &params, &Patch::Apply(intent.patch()))
            .await
            .map_err(|error| Problem::from(error).while_doing(&format!("{} {}", kind.kind, intent.name())))?;
        self.wrote(kind, written.meta());
        Ok(written)
    }

    pub(super) async fn merge<K>(
        &self,
        api: &Api<K>,
        kind: &ApiResource,
        name: &str,
        fields: &serde_json::Value,
    ) -> Result<K, Problem>
    where
        K: Resource + Clone + DeserializeOwned + Debug,
    {
        named(kind, None, name)?;
        let params = PatchParams {
            field_manager: Some(self.field_manager.clone()),
            ..PatchParams::default()
        };
        let written = api
            .patch(name, &params, &Patch::Merge(fields))
            .await
            .map_err(|error| Problem::from(error).while_doing(&format!("{} {name}", kind.kind)))?;
        self.wrote(kind, written.meta());
        Ok(written)
    }

    pub(super) fn context(&self) -> &ReconcileContext {
        &self.context
    }

    /// The object's children of a kind, including the effects of our writes.
    pub fn children<K: ChildKind>(&self) -> Vec<Child<K::Summary>> {
        self.context.children::<K>()
    }

    /// The object's children of all cached kinds, including the effects of our writes.
    pub fn all_children(&self) -> Children {
        self.context.child_caches.children(&self.context.parent)
    }

    /// Carries out what [`crate::children::decide`] has decided. Returns whether the child was written.
    pub async fn apply_change<K: ChildKind>(
        &self,
        change: ChildChange,
        takeover: Takeover,
    ) -> Result<bool, Problem> {
        match change {
            ChildChange::Keep => Ok(false),
            ChildChange::Write(intent) => self.write_child::<K>(&intent).await,
            ChildChange::Verify(intent) => self.verify::<K>(intent, takeover).await,
            ChildChange::Create(intent) => match self.write_child::<K>(&intent).await {
                // The name is in use, by another owner or by a child that the watch has not reported yet.
                Err(problem) if problem.is(Cause::Conflict) => self.verify::<K>(intent, takeover).await,
                written => written,
            },
        }
    }

    async fn verify<K: ChildKind>(&self, intent: Intent, takeover: Takeover) -> Result<bool, Problem> {
        named(&ApiResource::erase::<K>(&()), None, intent.name())?;
        let api = self.context.api::<K>();
        let live = api.get_opt(intent.name()).await?;
        let (name, parent) = (intent.name().to_owned(), &self.context.parent);
        if let Some(intent) = apply::decide(intent, live.as_ref(), parent, takeover)? {
            if let Some(live) = live.as_ref().filter(|_| takeover == Takeover::AdoptFields) {
                self.take_field_ownership(&api, live.meta()).await?;
            }
            return self.write_child::<K>(&intent).await;
        }
        if let (Some(cache), Some(live)) = (self.context.child_caches.of::<K>(), live) {
            cache.wrote(&live);
            cache.verified(&parent.key, &name);
        }
        Ok(false)
    }

    /// Takes over the fields that a predecessor has set, so that the next write removes those that are not intended.
    pub(super) async fn take_field_ownership<K>(&self, api: &Api<K>, live: &ObjectMeta) -> Result<(), Problem>
    where
        K: Clone + DeserializeOwned + Debug,
    {
        let entries = live.managed_fields.as_deref().unwrap_or_default();
        let Some(ours) = adopt_fields(entries, &self.field_manager) else {
            return Ok(());
        };
        let patch = serde_json::json!([
            { "op": "test", "path": "/metadata/resourceVersion", "value": live.resource_version },
            { "op": "replace", "path": "/metadata/managedFields", "value": ours },
        ]);
        let patch: json_patch::Patch = serde_json::from_value(patch).map_err(|error| {
            Problem::permanent("Unserializable", "a patch could not be written down").caused_by(error)
        })?;
        let params = PatchParams {
            field_manager: Some(self.field_manager.clone()),
            ..PatchParams::default()
        };
        let name = live.name.as_deref().unwrap_or_default();
        api.patch(name, &params, &Patch::<()>::Json(patch)).await?;
        Ok(())
    }

    async fn write_child<K: ChildKind>(&self, intent: &Intent) -> Result<bool, Problem> {
        let written: K = self.apply(intent).await?;
        if let Some(cache) = self.context.child_caches.of::<K>() {
            cache.wrote(&written);
        }
        Ok(true)
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

    /// Deletes a child, if it is still the observed one.
    pub async fn delete<K>(&self, child: &ObjectMeta) -> Result<(), Problem>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        self.remove(&self.context.api::<K>(), child).await
    }

    pub(super) async fn remove<K>(&self, api: &Api<K>, child: &ObjectMeta) -> Result<(), Problem>
    where
        K: Clone + DeserializeOwned + Debug,
    {
        let preconditions = Preconditions {
            uid: child.uid.clone(),
            resource_version: None,
        };
        let params = DeleteParams {
            preconditions: Some(preconditions),
            ..DeleteParams::default()
        };
        match api
            .delete(child.name.as_deref().unwrap_or_default(), &params)
            .await
        {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            Err(error) => Err(error.into()),
        }
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
