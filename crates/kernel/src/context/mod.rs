//! The handles of a reconcile: one that can only read, and one that writes.
//!
//! `observe` gets a [`Reader`] and `apply` a [`Writer`], so a write in the wrong step does not compile. [`ReconcileContext`] is
//! their common context.

mod external;
mod reader;
mod writer;

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::core::{ApiResource, DynamicObject, NamespaceResourceScope};
use kube::{Api, Client, Resource, ResourceExt};

use stanchion_api::names;

pub use self::reader::Reader;
pub use self::writer::Writer;
use crate::children::{Child, ChildCaches, ChildKind};
use crate::external::DiscoveryCache;
use crate::problem::Problem;
use crate::reconciler::Object;
use crate::text::{printable, shorten};
use crate::watch::dependencies::{Dependencies, Key};
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
            key: crate::watch::primary::key(object.meta()),
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
        let shown = shorten(&printable(name), 100);
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

    fn children<K: ChildKind>(&self) -> Vec<Child<K::Summary>> {
        let cache = self.child_caches.of::<K>();
        cache.map_or_else(Vec::new, |cache| cache.children(&self.parent))
    }
}
