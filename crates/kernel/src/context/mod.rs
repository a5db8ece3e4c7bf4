//! The handles of a reconcile: one that can only read, and one that writes.
//!
//! `observe` gets a [`Reader`] and `apply` a [`Writer`], so a write in the wrong step does not compile. [`ReconcileContext`] is
//! their common context.

mod writer;

use std::collections::HashSet;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{GetParams, ListParams};
use kube::core::{
    ApiResource, ClusterResourceScope, DynamicObject, NamespaceResourceScope, ObjectMeta, Request,
};
use kube::{Api, Client, Resource, ResourceExt};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use stanchion_api::names;

pub use self::writer::Writer;
use crate::children::{ChildCaches, Children};
use crate::external::{DiscoveryCache, ExternalKind, ServedKind, discover};
use crate::lenient::{Lenient, salvage, unreadable};
use crate::problem::Problem;
use crate::reconciler::Object;
use crate::scope::Scope;
use crate::text::shorten;
use crate::watch::dependencies::{Dependencies, Key, KnownVersion, Reference, kind_key};
use crate::watch::enqueue::Enqueuers;

/// The reconciled object, as far as reads and writes need it.
#[derive(Clone, Debug)]
pub struct Parent {
    /// Its namespace and name.
    pub key: Key,
    /// Its uid: a child is ours if its owner reference contains this uid.
    pub uid: String,
    /// The owner reference for children.
    pub owner: OwnerReference,
}

impl Parent {
    /// The subject for an object.
    pub fn of<O: Object>(object: &O) -> Self {
        let uid = object.uid().unwrap_or_default();
        let owner = OwnerReference {
            api_version: O::api_version(&()).into(),
            kind: O::kind(&()).into(),
            name: object.name_any(),
            uid: uid.clone(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        };
        Self {
            key: crate::watch::key(object.meta()),
            uid,
            owner,
        }
    }
}

/// The context of a pass: its object, and the shared state of the controller.
#[derive(Clone)]
pub struct ReconcileContext {
    /// The operator's client.
    pub client: Client,
    /// The object that is reconciled.
    pub parent: Parent,
    /// The index of what was read.
    pub dependencies: Arc<Dependencies>,
    /// The caches of children.
    pub child_caches: ChildCaches,
    /// Enqueues other objects.
    pub enqueuers: Enqueuers,
    /// How third-party kinds are served.
    pub discovery: DiscoveryCache,
}

/// Rejects invalid names. The client does not escape names in URLs, and they come from specs and Secrets: a name with a
/// slash or a question mark would request something else.
fn named(kind: &ApiResource, namespace: Option<&str>, name: &str) -> Result<(), Problem> {
    let refused = |what: &str, name: &str| {
        let shown = shorten(name, 100);
        Problem::permanent(
            "InvalidName",
            format!("{shown:?} cannot be the name of a {what}: use lower-case letters, digits, '-' and '.'"),
        )
    };
    match namespace.filter(|namespace| !names::is_namespace(namespace)) {
        Some(namespace) => Err(refused("namespace", namespace)),
        None if names::is_object(name) => Ok(()),
        None => Err(refused(&kind.kind, name)),
    }
}

impl ReconcileContext {
    /// The API of a kind in the object's namespace.
    fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &self.parent.key.namespace)
    }

    /// The API of a kind in the object's namespace, whatever its type.
    fn dynamic(&self, kind: &ApiResource) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), &self.parent.key.namespace, kind)
    }
}

/// The size of all objects that one pass may read by name. They are the Secrets and `ConfigMap`s of a tenant, who can
/// name hundreds of them, each as large as etcd accepts; half of the workers may hold as much for one namespace.
const MOST_READ: usize = 16 * 1024 * 1024;

/// Reads objects, and records what was read: a change of it wakes the object.
pub struct Reader {
    context: ReconcileContext,
    read: Mutex<HashSet<Reference>>,
    /// The size of the objects that were read by name.
    size: AtomicUsize,
}

impl Reader {
    /// A reader for one pass over one object.
    pub fn new(context: ReconcileContext) -> Self {
        Self {
            context,
            read: Mutex::default(),
            size: AtomicUsize::default(),
        }
    }

    /// The object that is reconciled.
    pub fn parent(&self) -> &Parent {
        &self.context.parent
    }

    /// The object's children of all kinds in [`Reconciler::child_kinds`](crate::Reconciler::child_kinds), from the cache: no
    /// request is sent.
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

    async fn remember<K>(
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
        let Some(text) = self.fetch(api.resource_url(), name).await? else {
            self.finish_read(&what, None);
            return Ok(None);
        };
        let found: K = serde_json::from_str(&text).map_err(|error| {
            let flaws =
                serde_json::from_str(&text).map_or_else(|_| Vec::new(), |value| salvage::<K>(value).1);
            if flaws.is_empty() {
                return kube::Error::SerdeError(error).into();
            }
            unreadable(&kind.kind, namespace, name, &flaws)
        })?;
        self.finish_read(&what, Some(found.meta()));
        Ok(Some(found))
    }

    /// As kube's `get_opt`, and counts the size of the object.
    async fn fetch(&self, collection: &str, name: &str) -> Result<Option<String>, Problem> {
        let mut request = Request::new(collection)
            .get(name, &GetParams::default())
            .map_err(kube::Error::BuildRequest)?;
        request.extensions_mut().insert("get");
        let text = match self.context.client.request_text(request).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => return Ok(None),
            answer => answer?,
        };
        let before = self.size.fetch_add(text.len(), Ordering::Relaxed);
        if before + text.len() > MOST_READ {
            let limit = MOST_READ / 1024 / 1024;
            let message = format!(
                "the object reads more than {limit} MiB of other objects; make the Secrets and ConfigMaps that it names smaller or fewer"
            );
            return Err(Problem::human("ReadsTooMuch", message));
        }
        Ok(Some(text))
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

    async fn remember_all<K>(
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
        self.is_external_unchanged(&ApiResource::erase::<K>(&()), name)
    }

    /// [`Self::is_unchanged`] for an object of a cluster-scoped kind.
    pub fn is_unchanged_cluster_wide<K: Resource<DynamicType = ()>>(&self, name: &str) -> bool {
        self.unchanged(Reference::new(&ApiResource::erase::<K>(&()), None, name))
    }

    /// [`Self::is_unchanged`] for an object of a third-party kind in the same namespace.
    pub fn is_external_unchanged(&self, kind: &ApiResource, name: &str) -> bool {
        let namespace = Some(self.context.parent.key.namespace.as_str());
        self.unchanged(Reference::new(kind, namespace, name))
    }

    fn unchanged(&self, what: Reference) -> bool {
        let unchanged = self
            .context
            .dependencies
            .is_unchanged(&self.context.parent.key, &what);
        self.note(what);
        unchanged
    }

    /// How the cluster serves a kind, if it does. A change of this wakes the object.
    pub async fn served(&self, kind: &'static ExternalKind) -> Result<Option<ServedKind>, Problem> {
        let (context, what) = (&self.context, kind.reference());
        if context.dependencies.is_unchanged(&context.parent.key, &what)
            && let Some(known) = context.discovery.last(kind)
        {
            self.note(what);
            return Ok(Some(known));
        }
        self.begin_read(&what);
        let definitions: Api<CustomResourceDefinition> = Api::all(context.client.clone());
        let found = definitions.get_metadata_opt(&what.name).await?;
        // Before the read counts as done: without its result, the next pass has to ask again.
        let served = match &found {
            Some(_) => discover(&context.client, kind).await?,
            None => None,
        };
        context.discovery.note(kind, served.as_ref());
        self.finish_read(&what, found.as_ref().map(|found| &found.metadata));
        if found.is_none() {
            return Ok(None);
        }
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
        let context = &self.context;
        let namespace = Some(context.parent.key.namespace.as_str());
        self.remember(&context.dynamic(kind), kind, namespace, name).await
    }

    /// Reads all objects of a kind in the same namespace; a change of any of them wakes the object.
    pub async fn list_external(&self, kind: &ApiResource) -> Result<Vec<DynamicObject>, Problem> {
        self.remember_all(&self.context.dynamic(kind), kind, &ListParams::default())
            .await
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

    fn begin_read(&self, what: &Reference) {
        self.note(what.clone());
        self.context
            .dependencies
            .begin_read(&self.context.parent.key, what);
    }

    fn finish_read(&self, what: &Reference, found: Option<&ObjectMeta>) {
        let known = KnownVersion::from_read(found);
        self.context
            .dependencies
            .finish_read(&self.context.parent.key, what, known);
    }

    fn note(&self, what: Reference) {
        let mut read = self.read.lock();
        read.insert(what);
    }
}
