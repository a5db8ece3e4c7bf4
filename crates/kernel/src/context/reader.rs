//! The read-only handle of a pass.

use std::collections::HashSet;
use std::fmt::Debug;

use kube::api::ListParams;
use kube::core::{ApiResource, ClusterResourceScope, NamespaceResourceScope, ObjectMeta};
use kube::{Api, Resource};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;

use super::{Parent, ReconcileContext, named};
use crate::children::{Child, ChildKind, Children};
use crate::lenient::Lenient;
use crate::problem::Problem;
use crate::scope::Scope;
use crate::watch::dependencies::{Key, KnownVersion, Reference, kind_key};

/// Reads objects, and records what was read: a change of it wakes the object.
pub struct Reader {
    context: ReconcileContext,
    read: Mutex<HashSet<Reference>>,
}

impl Reader {
    /// A reader for one pass over one object.
    pub fn new(context: ReconcileContext) -> Self {
        Self {
            context,
            read: Mutex::default(),
        }
    }

    /// The object that is reconciled.
    pub fn parent(&self) -> &Parent {
        &self.context.parent
    }

    pub(super) fn context(&self) -> &ReconcileContext {
        &self.context
    }

    /// The object's children of a kind, by name, from the cache: no request is sent. Empty for a kind that is not in
    /// [`Reconciler::child_kinds`](crate::Reconciler::child_kinds).
    pub fn children<K: ChildKind>(&self) -> Vec<Child<K::Summary>> {
        self.context.children::<K>()
    }

    /// The object's children of all kinds in [`Reconciler::child_kinds`](crate::Reconciler::child_kinds), from the cache.
    pub fn all_children(&self) -> Children {
        self.context.child_caches.children(&self.context.parent)
    }

    /// Reads an object in the same namespace.
    pub async fn get<K>(&self, name: &str) -> Result<Option<K>, Problem>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        self.get_in(&self.context.parent.key.namespace, name).await
    }

    /// Reads an object in any namespace.
    pub async fn get_in<K>(&self, namespace: &str, name: &str) -> Result<Option<K>, Problem>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        let api = Api::<K>::namespaced(self.context.client.clone(), namespace);
        self.remember(&api, &ApiResource::erase::<K>(&()), Some(namespace), name)
            .await
    }

    /// Reads an object of a cluster-scoped kind.
    pub async fn get_cluster_wide<K>(&self, name: &str) -> Result<Option<K>, Problem>
    where
        K: Resource<DynamicType = (), Scope = ClusterResourceScope> + Clone + DeserializeOwned + Debug,
    {
        let api = Api::<K>::all(self.context.client.clone());
        self.remember(&api, &ApiResource::erase::<K>(&()), None, name)
            .await
    }

    pub(super) async fn remember<K>(
        &self,
        api: &Api<K>,
        kind: &ApiResource,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<K>, Problem>
    where
        K: Resource + Clone + DeserializeOwned + Debug,
    {
        named(kind, namespace, name)?;
        let what = Reference::new(kind, namespace, name);
        self.begin_read(&what);
        let found = api.get_opt(name).await?;
        self.finish_read(&what, found.as_ref().map(K::meta));
        Ok(found)
    }

    /// Reads the objects in the same namespace that have these labels; a change of any of them wakes the object.
    pub async fn list<K>(&self, labels: &str) -> Result<Vec<K>, Problem>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        let params = ListParams::default().labels(labels);
        self.remember_all(&self.context.api::<K>(), &ApiResource::erase::<K>(&()), &params)
            .await
    }

    /// The names and labels of at most this many objects in the same namespace that have these labels. Their content is
    /// not read, and their changes do not wake the object: there may be any number of them, of any size.
    pub async fn list_metadata<K>(&self, labels: &str, limit: u32) -> Result<Vec<ObjectMeta>, Problem>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        let params = ListParams::default().labels(labels).limit(limit);
        let found = self.context.api::<K>().list_metadata(&params).await?.items;
        Ok(found.into_iter().map(|object| object.metadata).collect())
    }

    pub(super) async fn remember_all<K>(
        &self,
        api: &Api<K>,
        kind: &ApiResource,
        params: &ListParams,
    ) -> Result<Vec<K>, Problem>
    where
        K: Resource + Clone + DeserializeOwned + Debug,
    {
        let found = api.list(params).await?.items;
        let kind = kind_key(kind);
        for object in &found {
            let what = Reference::of(&kind, object.meta());
            self.begin_read(&what);
            self.finish_read(&what, Some(object.meta()));
        }
        Ok(found)
    }

    /// Reads all objects of a kind in the operator's scope, as far as they can be parsed: a malformed object does not
    /// block the others. Their changes do not wake the object.
    pub async fn survey<K>(&self, scope: &Scope) -> Result<Vec<K>, Problem>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        let listed = scope
            .api::<Lenient<K>>(&self.context.client)
            .list(&ListParams::default())
            .await?;
        Ok(listed
            .items
            .into_iter()
            .filter_map(Lenient::into_object)
            .collect())
    }

    /// Whether an object in the same namespace that an earlier pass has read is unchanged, according to its watch. It
    /// stays registered as a dependency.
    pub fn is_unchanged<K: Resource<DynamicType = ()>>(&self, name: &str) -> bool {
        let kind = ApiResource::erase::<K>(&());
        self.unchanged(Reference::new(
            &kind,
            Some(&self.context.parent.key.namespace),
            name,
        ))
    }

    /// [`Self::is_unchanged`] for an object of a cluster-scoped kind.
    pub fn is_unchanged_cluster_wide<K: Resource<DynamicType = ()>>(&self, name: &str) -> bool {
        self.unchanged(Reference::new(&ApiResource::erase::<K>(&()), None, name))
    }

    /// [`Self::is_unchanged`] for an object of a third-party kind in the same namespace.
    pub fn is_external_unchanged(&self, kind: &ApiResource, name: &str) -> bool {
        self.unchanged(Reference::new(
            kind,
            Some(&self.context.parent.key.namespace),
            name,
        ))
    }

    fn unchanged(&self, what: Reference) -> bool {
        let unchanged = self
            .context
            .dependencies
            .is_unchanged(&self.context.parent.key, &what);
        self.note(what);
        unchanged
    }

    /// Enqueues another object whose result depends on this one.
    pub fn wake<K: Resource<DynamicType = ()>>(&self, other: &Key) {
        self.context.enqueuers.enqueue::<K>(other);
    }

    /// Ends the pass: objects that it has not read do not wake the object any more.
    pub fn finish(self) {
        let read = self.read.into_inner();
        self.context.dependencies.keep(&self.context.parent.key, &read);
    }

    pub(super) fn begin_read(&self, what: &Reference) {
        self.note(what.clone());
        self.context
            .dependencies
            .begin_read(&self.context.parent.key, what);
    }

    pub(super) fn finish_read(&self, what: &Reference, found: Option<&ObjectMeta>) {
        let known = KnownVersion::from_read(found);
        self.context
            .dependencies
            .finish_read(&self.context.parent.key, what, known);
    }

    pub(super) fn note(&self, what: Reference) {
        let mut read = self.read.lock();
        read.insert(what);
    }
}
