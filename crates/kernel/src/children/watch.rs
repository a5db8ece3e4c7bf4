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
use crate::watch::dependencies::{Key, version};
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
    let mut listing = Listing::default();
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

/// A list that is not complete yet.
#[derive(Default)]
struct Listing {
    uids: HashSet<String>,
    /// The highest resource version in it. The list is by name, so it does not contain everything up to this before its end.
    newest: Option<u64>,
}

/// Records an event, and returns the owners that it wakes.
fn handle(cache: &ChildCache, listing: &mut Listing, event: Event<DynamicObject>) -> Vec<Key> {
    let see = |object| Live::from_watch(object).map_or_else(Vec::new, |live| cache.see(&live));
    match event {
        Event::Init => {
            *listing = Listing::default();
            Vec::new()
        }
        Event::InitApply(object) => {
            listing.uids.extend(object.metadata.uid.clone());
            listing.newest = listing.newest.max(version(&object.metadata));
            see(object)
        }
        // The version is recorded first, so that the response to an older write does not come in between.
        Event::Apply(object) => {
            cache.delivered(version(&object.metadata));
            see(object)
        }
        Event::Delete(object) => {
            cache.delivered(version(&object.metadata));
            cache.lose(&object.metadata).into_iter().collect()
        }
        Event::InitDone => {
            let Listing { uids, newest } = std::mem::take(listing);
            cache.delivered(newest);
            cache.keep_only(&uids)
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
    use serde_json::json;

    use super::*;
    use crate::context::Parent;

    const OWNER: &str = "uid of one";

    fn cache() -> ChildCaches {
        let owner = ("example.com".to_owned(), "Widget".to_owned());
        let cache = ChildCache::new(ApiResource::erase::<ConfigMap>(&()), owner, "toy".into());
        ChildCaches([Arc::new(cache)].into())
    }

    fn child(name: &str, version: u64) -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "namespace": "shop", "name": name, "uid": format!("uid of {name}"),
                "resourceVersion": version.to_string(),
                "ownerReferences": [{
                    "apiVersion": "example.com/v1", "kind": "Widget", "name": "one", "uid": OWNER, "controller": true,
                }],
            },
        }))
        .unwrap()
    }

    /// The names and versions of the cached children.
    fn cached(caches: &ChildCaches) -> Vec<(String, u64)> {
        let parent = Parent {
            key: Key {
                namespace: "shop".into(),
                name: "one".into(),
            },
            uid: OWNER.into(),
            owner: OwnerReference::default(),
        };
        let children = caches.children(&parent).by_kind;
        let all = children.into_iter().flat_map(|(_, children)| children);
        all.map(|child| (child.name, child.version)).collect()
    }

    fn are(names: &[(&str, u64)]) -> Vec<(String, u64)> {
        let owned = names.iter().map(|(name, version)| ((*name).to_owned(), *version));
        owned.collect()
    }

    #[test]
    fn a_response_after_the_deletion_does_not_bring_a_child_back() {
        let (caches, mut listing) = (cache(), Listing::default());
        let cache = &caches.0[0];
        for event in [Event::Apply(child("a", 10)), Event::Delete(child("a", 11))] {
            handle(cache, &mut listing, event);
        }
        cache.wrote(child("a", 10));
        assert_eq!(cached(&caches), []);
        // A write that the watch has not delivered is known at once.
        cache.wrote(child("b", 12));
        assert_eq!(cached(&caches), are(&[("b", 12)]));
        cache.wrote(child("b", 14));
        handle(cache, &mut listing, Event::Apply(child("b", 13)));
        assert_eq!(cached(&caches), are(&[("b", 14)]));
    }

    /// A list is in order of the names, and not of the versions.
    #[test]
    fn a_response_during_a_list_is_kept_and_one_after_it_is_not() {
        let (caches, mut listing) = (cache(), Listing::default());
        let cache = &caches.0[0];
        for event in [Event::Init, Event::InitApply(child("a", 20))] {
            handle(cache, &mut listing, event);
        }
        cache.wrote(child("b", 15));
        assert_eq!(cached(&caches), are(&[("a", 20), ("b", 15)]));
        for event in [Event::InitApply(child("b", 15)), Event::InitDone] {
            handle(cache, &mut listing, event);
        }
        cache.wrote(child("c", 16));
        assert_eq!(cached(&caches), are(&[("a", 20), ("b", 15)]));
    }
}
