//! The read-only handle of a pass.

use std::collections::HashSet;
use std::fmt::Debug;
use std::sync::{Mutex, PoisonError};

use kube::api::ListParams;
use kube::core::{ApiResource, ClusterResourceScope, NamespaceResourceScope, ObjectMeta};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;

use super::{Place, Subject, named};
use crate::family::{Child, Member};
use crate::lenient::Lenient;
use crate::problem::Problem;
use crate::scope::Scope;
use crate::watch::references::{Key, Known, Reference, kind_key};

/// Reads objects, and records what was read: a change of it wakes the object.
pub struct Reader {
    place: Place,
    read: Mutex<HashSet<Reference>>,
}

impl Reader {
    /// A reader for one pass over one object.
    pub fn new(place: Place) -> Self {
        Self {
            place,
            read: Mutex::default(),
        }
    }

    /// The object that is reconciled.
    pub fn subject(&self) -> &Subject {
        &self.place.subject
    }

    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// The object's children of a kind, by name, from the cache: no request is sent. Empty for a kind that is not in
    /// [`Reconciler::families`](crate::Reconciler::families).
    pub fn children<K: Member>(&self) -> Vec<Child<K::Kept>> {
        self.place.children::<K>()
    }

    /// Reads an object in the same namespace.
    pub async fn get<K>(&self, name: &str) -> Result<Option<K>, Problem>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        self.get_in(&self.place.subject.key.namespace, name).await
    }

    /// Reads an object in any namespace.
    pub async fn get_in<K>(&self, namespace: &str, name: &str) -> Result<Option<K>, Problem>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        let api = Api::<K>::namespaced(self.place.client.clone(), namespace);
        self.remember(&api, &ApiResource::erase::<K>(&()), Some(namespace), name)
            .await
    }

    /// Reads an object of a cluster-scoped kind.
    pub async fn get_cluster_wide<K>(&self, name: &str) -> Result<Option<K>, Problem>
    where
        K: Resource<DynamicType = (), Scope = ClusterResourceScope> + Clone + DeserializeOwned + Debug,
    {
        let api = Api::<K>::all(self.place.client.clone());
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
        self.about_to_read(&what);
        let found = api.get_opt(name).await?;
        self.have_read(&what, found.as_ref().map(K::meta));
        Ok(found)
    }

    /// Reads the objects in the same namespace that have these labels; a change of any of them wakes the object.
    pub async fn list<K>(&self, labels: &str) -> Result<Vec<K>, Problem>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        let params = ListParams::default().labels(labels);
        self.remember_all(&self.place.api::<K>(), &ApiResource::erase::<K>(&()), &params)
            .await
    }

    /// The names and labels of at most this many objects in the same namespace that have these labels. Their content is
    /// not read, and their changes do not wake the object: there may be any number of them, of any size.
    pub async fn list_metadata<K>(&self, labels: &str, limit: u32) -> Result<Vec<ObjectMeta>, Problem>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        let params = ListParams::default().labels(labels).limit(limit);
        let found = self.place.api::<K>().list_metadata(&params).await?.items;
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
            self.about_to_read(&what);
            self.have_read(&what, Some(object.meta()));
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
            .api::<Lenient<K>>(&self.place.client)
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
            Some(&self.place.subject.key.namespace),
            name,
        ))
    }

    /// [`Self::is_unchanged`] for an object of a cluster-scoped kind.
    pub fn is_unchanged_cluster_wide<K: Resource<DynamicType = ()>>(&self, name: &str) -> bool {
        self.unchanged(Reference::new(&ApiResource::erase::<K>(&()), None, name))
    }

    /// [`Self::is_unchanged`] for an object of a third-party kind in the same namespace.
    pub fn is_foreign_unchanged(&self, kind: &ApiResource, name: &str) -> bool {
        self.unchanged(Reference::new(
            kind,
            Some(&self.place.subject.key.namespace),
            name,
        ))
    }

    fn unchanged(&self, what: Reference) -> bool {
        let unchanged = self.place.references.is_unchanged(&self.place.subject.key, &what);
        self.note(what);
        unchanged
    }

    /// Enqueues another object whose result depends on this one.
    pub fn wake<K: Resource<DynamicType = ()>>(&self, other: &Key) {
        self.place.bells.ring::<K>(other);
    }

    /// Ends the pass: objects that it has not read do not wake the object any more.
    pub fn finish(self) {
        let read = self.read.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.place.references.keep(&self.place.subject.key, &read);
    }

    pub(super) fn about_to_read(&self, what: &Reference) {
        self.note(what.clone());
        self.place.references.about_to_read(&self.place.subject.key, what);
    }

    pub(super) fn have_read(&self, what: &Reference, found: Option<&ObjectMeta>) {
        let known = Known::from_read(found);
        self.place
            .references
            .have_read(&self.place.subject.key, what, known);
    }

    pub(super) fn note(&self, what: Reference) {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.insert(what);
    }
}
