//! The objects, kept current by one watch per kind. Every page reads from here, so a page costs the cluster nothing.
//!
//! The objects are redacted before they are kept. What the user may not read is kept as the reason, and tried again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use jiff::Timestamp;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use kube::runtime::{WatchStreamExt as _, watcher};
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use serde_json::Value;
use stanchion_fleet::assess::{self, Row};
use stanchion_fleet::cluster::{Cluster, Unreadable};
use stanchion_fleet::kinds::{Kind, with_status};
use stanchion_fleet::read::Unread;
use stanchion_fleet::redact;
use tokio::sync::broadcast;
use tokio::task::JoinSet;

/// Changes that a slow browser may be behind; then it reads everything again.
const BEHIND: usize = 256;
/// How long the first page waits for the first lists.
const FIRST: Duration = Duration::from_secs(3);

/// What the page says about objects that can be listed only.
const UNWATCHED: &str = "you may not watch them: the page shows them as they were when it started. \
                         Start stanchion ui again for their present state";

/// Namespace and name.
type Name = (String, String);

/// A change: the kind's plural name, namespace and name. `None` means the whole kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) plural: String,
    pub(crate) name: Option<Name>,
}

/// What is known about a kind.
#[derive(Debug)]
struct Shelf {
    kind: Kind,
    objects: BTreeMap<Name, Arc<Value>>,
    /// The objects of a list that is not complete yet.
    coming: BTreeMap<Name, Arc<Value>>,
    listed: bool,
    failed: Option<Unreadable>,
}

/// The objects of all kinds.
#[derive(Clone)]
pub(crate) struct Live {
    shelves: Arc<RwLock<Vec<Shelf>>>,
    changes: broadcast::Sender<Change>,
}

/// The rows of the fleet, and what is missing in them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fleet {
    /// The worst first.
    pub(crate) rows: Vec<Row>,
    pub(crate) unreadable: Vec<Unread>,
    /// Kinds whose first list is not complete.
    pub(crate) reading: Vec<String>,
}

impl Live {
    /// Starts the watches. They end when the set is dropped.
    pub(crate) fn start(cluster: &Cluster) -> (Self, JoinSet<()>) {
        let live = Self::empty();
        let mut tasks = JoinSet::new();
        for kind in with_status() {
            let watch = watcher::watcher(cluster.api(&kind.resource), watcher::Config::default());
            let (live, plural) = (live.clone(), kind.plural().to_owned());
            tasks.spawn(async move {
                let mut events = watch.default_backoff().boxed();
                while let Some(event) = events.next().await {
                    live.take(&plural, event);
                }
            });
        }
        (live, tasks)
    }

    fn empty() -> Self {
        let shelf = |kind| Shelf {
            kind,
            objects: BTreeMap::new(),
            coming: BTreeMap::new(),
            listed: false,
            failed: None,
        };
        Self {
            shelves: Arc::new(RwLock::new(with_status().iter().cloned().map(shelf).collect())),
            changes: broadcast::channel(BEHIND).0,
        }
    }

    /// The changes from now on.
    pub(crate) fn changes(&self) -> broadcast::Receiver<Change> {
        self.changes.subscribe()
    }

    /// Waits until every kind is listed or cannot be, but not for long: the page says what is missing.
    pub(crate) async fn settled(&self) {
        let mut changes = self.changes();
        let settled = async {
            while !self.is_settled() {
                if let Err(broadcast::error::RecvError::Closed) = changes.recv().await {
                    return;
                }
            }
        };
        let _ = tokio::time::timeout(FIRST, settled).await;
    }

    fn is_settled(&self) -> bool {
        self.read()
            .iter()
            .all(|shelf| shelf.listed || shelf.failed.is_some())
    }

    /// The rows at this time. `asked` is the plural name of the only requested kind.
    pub(crate) fn fleet(&self, asked: Option<&str>, now: Timestamp) -> Fleet {
        let shelves = self.read();
        let objects: Vec<(&Kind, &Value)> = shelves
            .iter()
            .flat_map(|shelf| shelf.objects.values().map(|object| (&shelf.kind, &**object)))
            .collect();
        let mut fleet = Fleet {
            rows: assess::rows(&objects, now, asked),
            ..Fleet::default()
        };
        for shelf in shelves.iter() {
            let plural = shelf.kind.plural().to_owned();
            match &shelf.failed {
                Some(why) => fleet.unreadable.push(Unread {
                    kind: plural,
                    why: why.clone(),
                }),
                None if !shelf.listed => fleet.reading.push(plural),
                None => {}
            }
        }
        drop(shelves);
        fleet
    }

    /// An event of a kind's watch.
    fn take(&self, plural: &str, event: Result<watcher::Event<DynamicObject>, watcher::Error>) {
        let mut shelves = self.write();
        let Some(cached) = shelves.iter_mut().find(|cached| cached.kind.plural() == plural) else {
            return;
        };
        let changed = match event {
            Ok(watcher::Event::Init) => {
                cached.coming.clear();
                return;
            }
            Ok(watcher::Event::InitApply(object)) => {
                let (name, object) = kept(object);
                cached.coming.insert(name, object);
                return;
            }
            Ok(watcher::Event::InitDone) => {
                cached.objects = std::mem::take(&mut cached.coming);
                (cached.listed, cached.failed) = (true, None);
                None
            }
            Ok(watcher::Event::Apply(object)) => {
                let (name, object) = kept(object);
                cached.objects.insert(name.clone(), object);
                cached.failed = None;
                Some(name)
            }
            Ok(watcher::Event::Delete(object)) => {
                let (name, _) = kept(object);
                cached.objects.remove(&name);
                Some(name)
            }
            Err(error) => {
                let why = if cached.listed && may_not_watch(&error) {
                    Unreadable::Failed(UNWATCHED.to_owned())
                } else {
                    reason(&error)
                };
                if why == Unreadable::Forbidden || why == Unreadable::NotServed {
                    // What the user may no longer see is not shown any longer.
                    cached.objects.clear();
                    cached.listed = false;
                }
                if cached.failed.as_ref() == Some(&why) {
                    return;
                }
                cached.failed = Some(why);
                None
            }
        };
        drop(shelves);
        // Without a listener there is nobody to notify.
        let _ = self.changes.send(Change {
            plural: plural.to_owned(),
            name: changed,
        });
    }

    fn read(&self) -> RwLockReadGuard<'_, Vec<Shelf>> {
        self.shelves.read()
    }

    fn write(&self) -> RwLockWriteGuard<'_, Vec<Shelf>> {
        self.shelves.write()
    }
}

/// The name of an object, and the object without secrets.
fn kept(object: DynamicObject) -> (Name, Arc<Value>) {
    let name = (object.namespace().unwrap_or_default(), object.name_any());
    let object = serde_json::to_value(object).unwrap_or_default();
    (name, Arc::new(redact::object(&object)))
}

/// Whether the user may list the objects, and not watch them: the watch begins after a complete list.
fn may_not_watch(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => status.code == 403,
        _ => false,
    }
}

fn reason(error: &watcher::Error) -> Unreadable {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => Unreadable::of(error),
        watcher::Error::WatchError(status) => match status.code {
            401 | 403 => Unreadable::Forbidden,
            code => Unreadable::Failed(format!("{code} {}", status.message)),
        },
        watcher::Error::NoResourceVersion => Unreadable::Failed(error.to_string()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use serde_json::json;

    use super::*;

    fn user(name: &str) -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "db.example.com/v1alpha1", "kind": "PostgresUser",
            "metadata": {
                "name": name, "namespace": "shop",
                "annotations": { "kubectl.kubernetes.io/last-applied-configuration": "hunter2" },
            },
            "spec": { "username": name, "comment": "hunter2" },
        }))
        .unwrap()
    }

    fn names(live: &Live) -> Vec<String> {
        let fleet = live.fleet(None, Timestamp::UNIX_EPOCH);
        fleet.rows.into_iter().map(|row| row.name).collect()
    }

    #[test]
    fn a_list_counts_when_it_is_complete() {
        let live = Live::empty();
        let mut changes = live.changes();
        let event = |event| live.take("postgresusers", Ok(event));
        event(watcher::Event::Init);
        event(watcher::Event::InitApply(user("alice")));
        assert!(names(&live).is_empty());
        assert!(changes.try_recv().is_err());
        event(watcher::Event::InitDone);
        assert_eq!(names(&live), ["alice"]);
        event(watcher::Event::Apply(user("bob")));
        event(watcher::Event::Delete(user("alice")));
        assert_eq!(names(&live), ["bob"]);
        event(watcher::Event::Init);
        event(watcher::Event::InitApply(user("carol")));
        assert_eq!(
            names(&live),
            ["bob"],
            "the old list stays until the new one is complete"
        );
        event(watcher::Event::InitDone);
        assert_eq!(names(&live), ["carol"]);
        let heard = std::iter::from_fn(|| changes.try_recv().ok()).count();
        assert_eq!(heard, 4);
    }

    #[test]
    fn what_may_not_be_read_is_said_and_not_shown() {
        let live = Live::empty();
        live.take("postgresusers", Ok(watcher::Event::Apply(user("alice"))));
        let refused = kube::core::Status::failure("no", "Forbidden")
            .with_code(403)
            .boxed();
        let error = watcher::Error::InitialListFailed(kube::Error::Api(refused));
        live.take("postgresusers", Err(error));
        let fleet = live.fleet(None, Timestamp::UNIX_EPOCH);
        assert!(fleet.rows.is_empty());
        assert_eq!(fleet.unreadable.len(), 1);
        assert_eq!(fleet.unreadable.first().unwrap().why, Unreadable::Forbidden);
        assert!(!fleet.reading.contains(&"postgresusers".to_owned()));
        assert!(!live.is_settled());
    }

    /// A role may grant `list` without `watch`.
    #[test]
    fn objects_that_may_be_listed_and_not_watched_are_shown() {
        let live = Live::empty();
        let refused = || {
            let status = kube::core::Status::failure("no", "Forbidden").with_code(403);
            kube::Error::Api(status.boxed())
        };
        for event in [
            watcher::Event::Init,
            watcher::Event::InitApply(user("alice")),
            watcher::Event::InitDone,
        ] {
            live.take("postgresusers", Ok(event));
        }
        live.take("postgresusers", Err(watcher::Error::WatchStartFailed(refused())));
        assert_eq!(names(&live), ["alice"]);
        let fleet = live.fleet(None, Timestamp::UNIX_EPOCH);
        let why = fleet.unreadable.first().unwrap().why.words();
        assert!(why.starts_with("you may not watch them"), "{why}");

        // Without `list`, nothing is shown any longer.
        live.take("postgresusers", Err(watcher::Error::InitialListFailed(refused())));
        assert!(names(&live).is_empty());
    }

    #[test]
    fn objects_are_kept_without_secrets() {
        let (_, object) = kept(user("alice"));
        assert!(!object.to_string().contains("hunter2"), "{object}");
    }
}
