//! The watches that fill a controller's child caches.

use std::collections::HashSet;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use kube::core::{ApiResource, DynamicObject, NamespaceResourceScope};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, Resource};

use super::cache::{ChildCache, ChildCaches, Live};
use crate::driver::Readiness;
use crate::scope::Scope;
use crate::watch::dependencies::Key;
use crate::watch::{MANAGED_BY, backoff, run_watch};

/// The context of the watches of a controller's child caches.
pub(crate) struct WatchContext<'a> {
    pub client: &'a Client,
    pub scope: &'a Scope,
    pub config: watcher::Config,
    /// Notified when the caches are complete; the controller's passes begin then.
    pub readiness: &'a [&'a Readiness],
    /// Group and kind of the controller's objects.
    pub owner: (String, String),
    pub manager: &'a str,
    pub wake: Arc<dyn Fn(Key) + Send + Sync>,
}

/// The kinds of a controller's child caches, before the caches are opened.
pub struct ChildKinds {
    label: &'static str,
    resources: Vec<ApiResource>,
}

impl Default for ChildKinds {
    fn default() -> Self {
        Self::labelled(MANAGED_BY.1)
    }
}

impl ChildKinds {
    /// For children with another value of the label [`MANAGED_BY`] than ours: a predecessor created them that way, and
    /// they set it themselves.
    pub fn labelled(label: &'static str) -> Self {
        Self {
            label,
            resources: Vec::new(),
        }
    }

    /// Adds one kind. It cannot be `Secret`: the operator reads its data when it needs them and never keeps them.
    #[must_use]
    pub fn with<K: Resource<DynamicType = (), Scope = NamespaceResourceScope>>(mut self) -> Self {
        self.resources.push(ApiResource::erase::<K>(&()));
        self
    }

    /// The kinds, for the RBAC rules of their watches.
    pub(crate) fn resources(&self) -> &[ApiResource] {
        &self.resources
    }

    /// The empty caches, and the endless futures that fill them.
    pub(crate) fn open(self, context: &WatchContext<'_>) -> (ChildCaches, Vec<BoxFuture<'static, ()>>) {
        let (caches, watches) = self
            .resources
            .into_iter()
            .map(|resource| open(resource, context, self.label))
            .collect::<(Vec<_>, Vec<_>)>();
        (ChildCaches(caches.into()), watches)
    }
}

fn open(
    resource: ApiResource,
    context: &WatchContext<'_>,
    label: &str,
) -> (Arc<ChildCache>, BoxFuture<'static, ()>) {
    let client = context.client.clone();
    let api: Api<DynamicObject> = match context.scope {
        Scope::Cluster => Api::all_with(client, &resource),
        Scope::Namespace(namespace) => Api::namespaced_with(client, namespace, &resource),
    };
    let ours = format!("{}={label}", MANAGED_BY.0);
    let events = watcher(api, context.config.clone().labels(&ours)).backoff(backoff());
    let name = format!("children of kind {} in {}", resource.plural, context.scope);
    let done: Vec<_> = context
        .readiness
        .iter()
        .map(|readiness| readiness.expect(&name))
        .collect();
    let (owner, manager) = (context.owner.clone(), context.manager.to_owned());
    let cache = Arc::new(ChildCache::new(resource, owner, manager));
    let (filled, wake) = (Arc::clone(&cache), Arc::clone(&context.wake));
    let mut listing = HashSet::new();
    let watch = async move {
        let synced = |missing: Option<String>| done.iter().for_each(|done| done(missing.clone()));
        run_watch(&name, events, synced, |event| {
            for key in handle(&filled, &mut listing, event) {
                wake(key);
            }
        })
        .await;
    };
    (cache, watch.boxed())
}

/// Records an event, and returns the owners that it wakes.
fn handle(cache: &ChildCache, listing: &mut HashSet<String>, event: Event<DynamicObject>) -> Vec<Key> {
    let see = |object| Live::from_watch(object).map_or_else(Vec::new, |live| cache.see(&live));
    match event {
        Event::Init => {
            listing.clear();
            Vec::new()
        }
        Event::InitApply(object) => {
            listing.extend(object.metadata.uid.clone());
            see(object)
        }
        Event::Apply(object) => see(object),
        Event::Delete(object) => cache.lose(&object.metadata).into_iter().collect(),
        Event::InitDone => cache.keep_only(&std::mem::take(listing)),
    }
}
