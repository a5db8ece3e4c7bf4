//! The watches of a third-party kind: one of its CRD, and one of its objects while the kind is served.

use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::{ApiResource, PartialObjectMeta};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use tokio::sync::watch::{self, Receiver, Sender};
use tokio::time::timeout;
use tracing::{debug, warn};

use super::{ExternalKind, ServedKind, discover};
use crate::driver::Readiness;
use crate::problem::chain;
use crate::scope::Scope;
use crate::watch::dependencies::version;
use crate::watch::related::{EventRouter, Subscriber, open};
use crate::watch::{Watch, backoff, run_watch};

/// A CRD is served a moment after it is created.
const SOON: Duration = Duration::from_secs(1);

/// The state of the CRD.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Definition {
    /// Not listed yet.
    Unlisted,
    /// It does not exist.
    Absent,
    /// It exists, with this resource version.
    There(Option<u64>),
}

/// Follows a kind forever.
pub(crate) fn follow(
    client: Client,
    kind: &'static ExternalKind,
    scope: Scope,
    subscribers: Vec<Subscriber>,
    config: watcher::Config,
    readiness: &Readiness,
) -> BoxFuture<'static, ()> {
    let defined = readiness.expect(&format!("watch of the CRD of {}", kind.plural));
    let name = format!("watch of {} in {scope}", kind.plural);
    let watched = readiness.expect(&name);
    let (sender, receiver) = watch::channel(Definition::Unlisted);
    let definition = definition(
        client.clone(),
        kind,
        subscribers.clone(),
        config.clone(),
        sender,
        defined,
    );
    let follower = Follower {
        client,
        kind,
        scope,
        subscribers,
        config,
        name,
    };
    async move {
        tokio::join!(definition, follower.objects(receiver, watched));
    }
    .boxed()
}

/// Watches only this CRD: there may be hundreds of others.
async fn definition(
    client: Client,
    kind: &'static ExternalKind,
    subscribers: Vec<Subscriber>,
    config: watcher::Config,
    sender: Sender<Definition>,
    synced: impl Fn(Option<String>),
) {
    let name = kind.definition();
    let api: Api<PartialObjectMeta<CustomResourceDefinition>> = Api::all(client);
    let events = watcher(api, config.fields(&format!("metadata.name={name}"))).backoff(backoff());
    let reference = kind.reference();
    let mut listing = None;
    run_watch(&format!("CRD {name}"), events, synced, |event| {
        let now = match event {
            Event::Init => {
                listing = None;
                return;
            }
            Event::InitApply(found) => {
                listing = Some(version(&found.metadata));
                return;
            }
            Event::InitDone => listing.take().map_or(Definition::Absent, Definition::There),
            Event::Apply(found) => Definition::There(version(&found.metadata)),
            Event::Delete(_) => Definition::Absent,
        };
        for subscriber in &subscribers {
            let readers = match &now {
                Definition::There(version) => subscriber.dependencies.changed(&reference, *version),
                _ => subscriber.dependencies.gone(&reference, None),
            };
            for key in readers {
                (subscriber.wake)(key);
            }
        }
        sender.send_replace(now);
    })
    .await;
}

struct Follower {
    client: Client,
    kind: &'static ExternalKind,
    scope: Scope,
    subscribers: Vec<Subscriber>,
    config: watcher::Config,
    name: String,
}

impl Follower {
    /// Watches the objects while the kind is served.
    async fn objects(self, mut definition: Receiver<Definition>, synced: impl Fn(Option<String>)) {
        loop {
            let now = definition.borrow_and_update().clone();
            let served = match now {
                Definition::Unlisted => None,
                Definition::Absent => {
                    synced(None);
                    None
                }
                Definition::There(_) => self.served().await,
            };
            if let Some(served) = served {
                debug!(kind = self.kind.kind, version = served.resource.version, "served");
                let other = self.other(&mut definition, &served);
                tokio::select! {
                    biased;
                    () = self.watch(&served.resource, &synced) => {}
                    () = other => {}
                }
            } else if matches!(now, Definition::There(_)) {
                // Not served in any version that we can watch: do not delay others.
                synced(None);
                // Discovery runs again after a change or after this time.
                let _ = timeout(SOON, definition.changed()).await;
            } else if definition.changed().await.is_err() {
                return;
            }
        }
    }

    async fn served(&self) -> Option<ServedKind> {
        discover(&self.client, self.kind).await.unwrap_or_else(|error| {
            warn!(
                kind = self.kind.kind,
                error = chain(&error),
                "cannot find out in which version it is served"
            );
            None
        })
    }

    async fn watch(&self, resource: &ApiResource, synced: &impl Fn(Option<String>)) {
        let watch = Watch {
            resource: resource.clone(),
            only_ours: false,
            namespaced: true,
        };
        let mut router = EventRouter::new(&watch, &self.scope, self.subscribers.clone());
        let events = open(self.client.clone(), &watch, &self.scope, self.config.clone());
        run_watch(&self.name, events, synced, |event| {
            router.handle(&event);
        })
        .await;
    }

    /// Returns when the kind is no longer served as before.
    async fn other(&self, definition: &mut Receiver<Definition>, as_it_was: &ServedKind) {
        loop {
            if definition.changed().await.is_err() {
                return;
            }
            let now = definition.borrow_and_update().clone();
            if !matches!(now, Definition::There(_)) || self.served().await.as_ref() != Some(as_it_was) {
                // The loop that waits for changes must see this one, too.
                definition.mark_changed();
                return;
            }
        }
    }
}
