//! The watches that fill a controller's families.

use std::any::{Any, TypeId};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use kube::core::{ApiResource, DynamicObject};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};

use super::Member;
use super::store::{Families, Family, Live};
use crate::driver::Synced;
use crate::scope::Scope;
use crate::watch::references::Key;
use crate::watch::{MANAGED_BY, attend, backoff};

/// The context of the watches of a controller's families.
pub(crate) struct Setting<'a> {
    pub client: &'a Client,
    pub scope: &'a Scope,
    pub config: watcher::Config,
    /// Notified when the families are complete; the controller's passes begin then.
    pub synced: &'a [&'a Synced],
    /// Group and kind of the controller's objects.
    pub owner: (String, String),
    pub manager: &'a str,
    pub wake: Arc<dyn Fn(Key) + Send + Sync>,
}

/// The kinds of a controller's families, before they are opened.
pub struct Kinds {
    label: &'static str,
    open: Vec<Open>,
    resources: Vec<ApiResource>,
}

impl Default for Kinds {
    fn default() -> Self {
        Self::labelled(MANAGED_BY.1)
    }
}

type Open = Box<dyn FnOnce(&Setting<'_>, &'static str) -> Opened>;
type Opened = (TypeId, Arc<dyn Any + Send + Sync>, BoxFuture<'static, ()>);

impl Kinds {
    /// For children with another value of the label [`MANAGED_BY`] than ours: a predecessor created them that way, and
    /// they set it themselves.
    pub fn labelled(label: &'static str) -> Self {
        Self {
            label,
            open: Vec::new(),
            resources: Vec::new(),
        }
    }

    /// Adds one kind.
    #[must_use]
    pub fn with<K: Member>(mut self) -> Self {
        self.resources.push(ApiResource::erase::<K>(&()));
        self.open.push(Box::new(|setting, label| {
            let family = Arc::new(Family::<K>::new(setting.owner.clone(), setting.manager.into()));
            let watch = open(Arc::clone(&family), setting, label);
            (TypeId::of::<K>(), family, watch)
        }));
        self
    }

    /// The kinds, for the RBAC rules of their watches.
    pub(crate) fn resources(&self) -> &[ApiResource] {
        &self.resources
    }

    /// The empty families, and the endless futures that fill them.
    pub(crate) fn open(self, setting: &Setting<'_>) -> (Families, Vec<BoxFuture<'static, ()>>) {
        let mut by_kind = HashMap::new();
        let mut watches = Vec::new();
        for open in self.open {
            let (kind, family, watch) = open(setting, self.label);
            by_kind.insert(kind, family);
            watches.push(watch);
        }
        (Families::new(by_kind), watches)
    }
}

fn open<K: Member>(family: Arc<Family<K>>, setting: &Setting<'_>, label: &str) -> BoxFuture<'static, ()> {
    let resource = ApiResource::erase::<K>(&());
    let client = setting.client.clone();
    let api: Api<DynamicObject> = match setting.scope {
        Scope::Cluster => Api::all_with(client, &resource),
        Scope::Namespace(namespace) => Api::namespaced_with(client, namespace, &resource),
    };
    let ours = format!("{}={label}", MANAGED_BY.0);
    let events = watcher(api, setting.config.clone().labels(&ours)).backoff(backoff());
    let name = format!("children of kind {} in {}", resource.plural, setting.scope);
    let done: Vec<_> = setting.synced.iter().map(|synced| synced.expect(&name)).collect();
    let wake = Arc::clone(&setting.wake);
    let mut listing = HashSet::new();
    async move {
        let synced = |missing: Option<String>| done.iter().for_each(|done| done(missing.clone()));
        attend(&name, events, synced, |event| {
            for key in hear(&family, &mut listing, event) {
                wake(key);
            }
        })
        .await;
    }
    .boxed()
}

/// Records an event, and returns the owners that it wakes.
fn hear<K: Member>(
    family: &Family<K>,
    listing: &mut HashSet<String>,
    event: Event<DynamicObject>,
) -> Vec<Key> {
    let see = |object| Live::told(object).and_then(|live| family.see(&live));
    match event {
        Event::Init => {
            listing.clear();
            Vec::new()
        }
        Event::InitApply(object) => {
            listing.extend(object.metadata.uid.clone());
            see(object).into_iter().collect()
        }
        Event::Apply(object) => see(object).into_iter().collect(),
        Event::Delete(object) => family.lose(&object.metadata).into_iter().collect(),
        Event::InitDone => family.keep_only(&std::mem::take(listing)),
    }
}
