//! Watches of the kinds that wake our objects: metadata only, no cache, one for all controllers.
//!
//! kube's shared streams drop deletions and can lose an event, so this code shares the watch itself: every subscriber
//! gets each event through a plain function call.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::{FutureExt, Stream};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::core::{ApiResource, DynamicObject, ObjectMeta, PartialObjectMeta};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, Resource};

use super::dependencies::{Dependencies, Key, Reference, kind_key, version};
use super::{backoff, run_watch};
use crate::driver::Readiness;
use crate::external::{self, ExternalKind};
use crate::scope::Scope;

/// The label on everything that the operator creates, and the selector of its watches.
pub const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "stanchion");

/// A kind, in addition to its own, whose changes wake a controller's objects.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Watch {
    /// The kind.
    pub resource: ApiResource,
    /// Whether only objects with [`MANAGED_BY`] are watched. A kind whose user-created objects are referred to must be
    /// watched completely.
    pub only_ours: bool,
    /// Whether the kind is namespaced; cluster-scoped kinds are watched completely, whatever the operator's scope.
    pub namespaced: bool,
}

impl Watch {
    /// Users' objects that our objects refer to by name: they wake the objects that have read them.
    pub fn referred<K: Resource<DynamicType = ()>>() -> Self {
        Self {
            resource: ApiResource::erase::<K>(&()),
            only_ours: false,
            namespaced: true,
        }
    }

    /// Children that the controller creates: they wake their owner.
    pub fn owned<K: Resource<DynamicType = ()>>() -> Self {
        Self {
            only_ours: true,
            ..Self::referred::<K>()
        }
    }

    /// A cluster-scoped kind that our objects refer to by name.
    pub fn cluster_wide<K: Resource<DynamicType = ()>>() -> Self {
        Self {
            namespaced: false,
            ..Self::referred::<K>()
        }
    }
}

/// A controller, as far as a watch of another kind needs it.
#[derive(Clone)]
pub struct Subscriber {
    /// Group and kind of its objects, to find them in ownerReferences.
    pub owner: (String, String),
    /// The index of what was read.
    pub dependencies: Arc<Dependencies>,
    /// Enqueues an object of the controller.
    pub wake: Arc<dyn Fn(Key) + Send + Sync>,
}

/// The watches that the controllers need, each opened once.
#[derive(Default)]
pub struct Related {
    watches: HashMap<(Watch, Scope), Vec<Subscriber>>,
    external: HashMap<(&'static ExternalKind, Scope), Vec<Subscriber>>,
}

impl Related {
    /// Adds a controller's watches.
    pub fn subscribe(&mut self, watches: Vec<Watch>, scope: &Scope, subscriber: &Subscriber) {
        for watch in watches {
            let scope = if watch.namespaced {
                scope.clone()
            } else {
                Scope::Cluster
            };
            self.watches
                .entry((watch, scope))
                .or_default()
                .push(subscriber.clone());
        }
    }

    /// Adds the third-party kinds that a controller follows while they are served.
    pub fn follow(&mut self, kinds: &[&'static ExternalKind], scope: &Scope, subscriber: &Subscriber) {
        for kind in kinds {
            let subscribers = self.external.entry((*kind, scope.clone())).or_default();
            subscribers.push(subscriber.clone());
        }
    }

    /// One endless future for each watch. A kind that is watched completely needs no second watch for our own objects.
    pub fn into_futures(
        mut self,
        client: &Client,
        config: &watcher::Config,
        readiness: &Readiness,
    ) -> Vec<BoxFuture<'static, ()>> {
        let partial: Vec<(Watch, Scope)> = self
            .watches
            .keys()
            .filter(|(w, _)| w.only_ours)
            .cloned()
            .collect();
        for key in partial {
            let whole = (
                Watch {
                    only_ours: false,
                    ..key.0.clone()
                },
                key.1.clone(),
            );
            if self.watches.contains_key(&whole) {
                let subscribers = self.watches.remove(&key).unwrap_or_default();
                self.watches.entry(whole).or_default().extend(subscribers);
            }
        }
        // In a fixed order, so that a simulated run depends on its seed alone.
        let mut external: Vec<_> = self.external.into_iter().collect();
        external.sort_by_cached_key(|((kind, scope), _)| (kind.group, kind.kind, scope.to_string()));
        let external = external.into_iter().map(|((kind, scope), subscribers)| {
            external::watch::follow(
                client.clone(),
                kind,
                scope,
                subscribers,
                config.clone(),
                readiness,
            )
        });
        let mut watches: Vec<_> = self.watches.into_iter().collect();
        watches.sort_by_cached_key(|((watch, scope), _)| {
            (kind_key(&watch.resource), watch.only_ours, scope.to_string())
        });
        watches
            .into_iter()
            .map(|((watch, scope), subscribers)| {
                let name = format!("watch of {} in {scope}", watch.resource.plural);
                let done = readiness.expect(&name);
                let mut router = EventRouter::new(&watch, &scope, subscribers);
                let events = open(client.clone(), &watch, &scope, config.clone());
                async move { run_watch(&name, events, done, |event| router.handle(&event)).await }.boxed()
            })
            .chain(external)
            .collect()
    }
}

pub(crate) type Metadata = PartialObjectMeta<DynamicObject>;

pub(crate) fn open(
    client: Client,
    watch: &Watch,
    scope: &Scope,
    config: watcher::Config,
) -> impl Stream<Item = watcher::Result<Event<Metadata>>> + Send + use<> {
    let api: Api<Metadata> = match scope {
        Scope::Cluster => Api::all_with(client, &watch.resource),
        Scope::Namespace(namespace) => Api::namespaced_with(client, namespace, &watch.resource),
    };
    let config = if watch.only_ours {
        config.labels(&format!("{}={}", MANAGED_BY.0, MANAGED_BY.1))
    } else {
        config
    };
    watcher(api, config).backoff(backoff())
}

/// Converts the events of one watch to enqueued objects.
pub(crate) struct EventRouter {
    kind: String,
    namespace: Option<String>,
    subscribers: Vec<Subscriber>,
    /// The objects in the current list so far.
    listing: HashSet<Reference>,
}

impl EventRouter {
    pub(crate) fn new(watch: &Watch, scope: &Scope, subscribers: Vec<Subscriber>) -> Self {
        let namespace = match scope {
            Scope::Cluster => None,
            Scope::Namespace(namespace) => Some(namespace.clone()),
        };
        Self {
            kind: kind_key(&watch.resource),
            namespace,
            subscribers,
            listing: HashSet::new(),
        }
    }

    pub(crate) fn handle(&mut self, event: &Event<Metadata>) {
        match event {
            Event::Init => self.listing.clear(),
            Event::InitApply(object) => {
                self.listing.insert(Reference::of(&self.kind, &object.metadata));
                self.notify(&object.metadata, false);
            }
            Event::Apply(object) => self.notify(&object.metadata, false),
            Event::Delete(object) => self.notify(&object.metadata, true),
            Event::InitDone => {
                let listing = std::mem::take(&mut self.listing);
                for subscriber in &self.subscribers {
                    let woken =
                        subscriber
                            .dependencies
                            .relisted(&self.kind, self.namespace.as_deref(), &listing);
                    for key in woken {
                        (subscriber.wake)(key);
                    }
                }
            }
        }
    }

    fn notify(&self, meta: &ObjectMeta, gone: bool) {
        let reference = Reference::of(&self.kind, meta);
        for subscriber in &self.subscribers {
            let readers = if gone {
                subscriber.dependencies.gone(&reference, version(meta))
            } else {
                subscriber.dependencies.changed(&reference, version(meta))
            };
            let owners = meta
                .owner_references
                .iter()
                .flatten()
                .filter(|owner| is_ours(owner, &subscriber.owner))
                .map(|owner| Key { namespace: reference.namespace.clone(), name: owner.name.clone() })
                // The event of the owner's own write does not wake it.
                .filter(|owner| !subscriber.dependencies.is_current(owner, &reference, version(meta)));
            readers
                .into_iter()
                .chain(owners)
                .for_each(|key| (subscriber.wake)(key));
        }
    }
}

/// Whether this reference names the controller of the object, and its group and kind match.
pub(crate) fn is_ours(owner: &OwnerReference, (group, kind): &(String, String)) -> bool {
    let of_group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
    owner.controller == Some(true) && of_group == group && owner.kind == *kind
}
