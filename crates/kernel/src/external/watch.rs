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
/// A CRD that is served in no version of ours may stay for ever.
const LATER: Duration = Duration::from_mins(1);
/// An API server that does not answer may do so again at any time.
const AFTER_ERROR: Duration = Duration::from_secs(5);
/// After a change of the CRD, discovery may return the state before it: it is repeated until it is this long.
const LAG: Duration = Duration::from_secs(4);

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
        let mut pause = SOON;
        let mut before = None;
        loop {
            let now = definition.borrow_and_update().clone();
            let served = match now {
                Definition::Unlisted => Ok(None),
                Definition::Absent => {
                    synced(None);
                    before = None;
                    Ok(None)
                }
                Definition::There(_) => self.served().await,
            };
            if let Ok(served) = &served
                && *served != before
            {
                before.clone_from(served);
                self.wake_readers();
            }
            let longest = if served.is_ok() { LATER } else { AFTER_ERROR };
            if let Ok(Some(served)) = served {
                debug!(kind = self.kind.kind, version = served.resource.version, "served");
                pause = SOON;
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
                pause = pause.min(longest);
                match timeout(pause, definition.changed()).await {
                    Ok(_) => pause = SOON,
                    Err(_) => pause = longest.min(pause * 2),
                }
            } else if definition.changed().await.is_err() {
                return;
            }
        }
    }

    /// Wakes every object whose pass asked for the kind. It may have asked after the change of the CRD, and before the API server
    /// served the change.
    fn wake_readers(&self) {
        let definition = self.kind.reference();
        for subscriber in &self.subscribers {
            for key in subscriber.dependencies.changed(&definition, None) {
                (subscriber.wake)(key);
            }
        }
    }

    async fn served(&self) -> kube::Result<Option<ServedKind>> {
        discover(&self.client, self.kind).await.inspect_err(|error| {
            warn!(
                kind = self.kind.kind,
                error = chain(error),
                "cannot find out in which version it is served"
            );
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

    /// Returns when the kind is no longer served as before. An API server that does not say so may be restarting: the watch
    /// goes on meanwhile.
    async fn other(&self, definition: &mut Receiver<Definition>, as_it_was: &ServedKind) {
        let mut pause = Duration::MAX;
        loop {
            let has_changed = match timeout(pause, definition.changed()).await {
                Ok(Ok(())) => true,
                Ok(Err(_)) => return,
                Err(_) => false,
            };
            let now = definition.borrow_and_update().clone();
            let served = match now {
                Definition::There(_) => self.served().await,
                _ => Ok(None),
            };
            match served {
                Ok(Some(served)) if served == *as_it_was => {
                    pause = match pause {
                        _ if has_changed => SOON,
                        pause if pause < LAG => pause * 2,
                        _ => Duration::MAX,
                    };
                }
                Ok(_) => {
                    // The loop that waits for changes must see this one, too.
                    definition.mark_changed();
                    return;
                }
                Err(_) if pause == Duration::MAX => pause = SOON,
                Err(_) => pause = AFTER_ERROR.min(pause * 2),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::json;

    use super::*;
    use crate::watch::dependencies::{Dependencies, Key, KnownVersion};

    static KIND: ExternalKind = ExternalKind {
        group: "example.com",
        kind: "Thing",
        plural: "things",
        versions: &["v1"],
    };

    /// A follower of the kind, and the answers of its API server: the code of each discovery, and their number.
    fn follower(code: &Arc<AtomicUsize>, asked: &Arc<AtomicUsize>) -> Follower {
        let (code, asked) = (Arc::clone(code), Arc::clone(asked));
        let service = tower::service_fn(move |request: Request<Body>| {
            let discovers = request.uri().path().ends_with("/v1");
            let code = u16::try_from(code.load(SeqCst)).unwrap();
            asked.fetch_add(usize::from(discovers), SeqCst);
            let resource = json!({ "name": "things", "singularName": "", "namespaced": true, "kind": "Thing", "verbs": [] });
            let body = json!({ "groupVersion": "example.com/v1", "resources": [resource] }).to_string();
            let body = if code == 200 { body } else { "no".to_owned() };
            async move {
                if !discovers {
                    return std::future::pending().await;
                }
                let response = Response::builder().status(code);
                Ok::<_, Infallible>(response.body(Body::from(body.into_bytes())).unwrap())
            }
        });
        Follower {
            client: Client::new(service, "default"),
            kind: &KIND,
            scope: Scope::Cluster,
            subscribers: Vec::new(),
            config: watcher::Config::default(),
            name: "things".into(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_kind_in_no_version_of_ours_is_looked_up_ever_less_often() {
        let (code, asked) = (Arc::new(AtomicUsize::new(404)), Arc::default());
        let (_sender, receiver) = watch::channel(Definition::There(Some(1)));
        let following = follower(&code, &asked);
        let following = following.objects(receiver, |_| {});
        assert!(timeout(Duration::from_mins(10), following).await.is_err());
        assert!((10..20).contains(&asked.load(SeqCst)), "{asked:?}");
    }

    /// An outage of the API server is not a kind that nobody serves.
    #[tokio::test(start_paused = true)]
    async fn a_discovery_that_fails_is_repeated_soon() {
        let (code, asked) = (Arc::new(AtomicUsize::new(404)), Arc::default());
        let (_sender, receiver) = watch::channel(Definition::There(Some(1)));
        let follower = follower(&code, &asked);
        let mut following = std::pin::pin!(follower.objects(receiver, |_| {}));
        assert!(timeout(Duration::from_mins(10), &mut following).await.is_err());
        code.store(500, SeqCst);
        // The pause after the last answer may still be long.
        assert!(timeout(LATER, &mut following).await.is_err());
        let before = asked.load(SeqCst);
        assert!(timeout(Duration::from_mins(1), &mut following).await.is_err());
        assert!(asked.load(SeqCst) - before >= 10, "{before} {asked:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_watch_goes_on_while_discovery_fails() {
        let (code, asked) = (Arc::new(AtomicUsize::new(500)), Arc::default());
        let (sender, mut receiver) = watch::channel(Definition::There(Some(1)));
        let as_it_was = ServedKind {
            resource: KIND.at("v1"),
            versions: vec!["v1"],
        };
        let follower = follower(&code, &asked);
        let mut other = std::pin::pin!(follower.other(&mut receiver, &as_it_was));
        sender.send_replace(Definition::There(Some(2)));
        assert!(timeout(Duration::from_mins(5), &mut other).await.is_err());
        assert!(asked.load(SeqCst) > 50, "{asked:?}");
        // It is asked again until it answers, and then no more.
        code.store(200, SeqCst);
        assert!(timeout(Duration::from_mins(5), &mut other).await.is_err());
        let answered = asked.load(SeqCst);
        assert!(timeout(Duration::from_mins(5), &mut other).await.is_err());
        assert_eq!(asked.load(SeqCst), answered);
        code.store(404, SeqCst);
        sender.send_replace(Definition::There(Some(3)));
        assert!(timeout(Duration::from_secs(1), other).await.is_ok());
    }

    /// The API server reports the change of a CRD before it serves the change.
    #[tokio::test(start_paused = true)]
    async fn a_change_that_is_served_late_is_noticed() {
        let (code, asked) = (Arc::new(AtomicUsize::new(200)), Arc::default());
        let (sender, receiver) = watch::channel(Definition::There(Some(1)));
        let (woken, dependencies) = (Arc::new(AtomicUsize::new(0)), Arc::new(Dependencies::default()));
        let wakes = Arc::clone(&woken);
        let mut follower = follower(&code, &asked);
        follower.subscribers = vec![Subscriber {
            owner: Default::default(),
            dependencies: Arc::clone(&dependencies),
            wake: Arc::new(move |_| {
                wakes.fetch_add(1, SeqCst);
            }),
        }];
        let mut following = std::pin::pin!(follower.objects(receiver, |_| {}));
        assert!(timeout(Duration::from_mins(1), &mut following).await.is_err());
        // A pass asks right after the change, and gets what was served before.
        sender.send_replace(Definition::There(Some(2)));
        let reader = Key {
            namespace: "n".into(),
            name: "one".into(),
        };
        let definition = KIND.reference();
        dependencies.begin_read(&reader, &definition);
        dependencies.finish_read(&reader, &definition, KnownVersion::At(2));
        assert!(timeout(SOON / 2, &mut following).await.is_err());
        assert_eq!(woken.load(SeqCst), 0);
        code.store(404, SeqCst);
        assert!(timeout(LAG * 2, &mut following).await.is_err());
        assert_eq!(woken.load(SeqCst), 1);
        assert!(!dependencies.is_unchanged(&reader, &definition));
    }
}
