//! Kubernetes Events: one for each transition, with the newest message, without repetitions.
//!
//! - [`transitions()`] selects the events from the conditions before and after.
//! - [`Recorder`] writes them, and merges repetitions into one Event with a count.
//!
//! Events are best effort: if one cannot be written, the reconcile continues.
//!
//! kube's own recorder does not replace this: it merges events without regard to their note, so a new message would not
//! be seen, and it forgets after a restart what it has sent.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, MicroTime};
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use serde_json::json;
use tokio::time::Instant;
use tracing::{debug, warn};

use crate::ambient;
use crate::lease::Fence;
use crate::problem::is_terminating;
use crate::rbac::Rule;
use crate::text::shorten;

/// The API's limits in bytes: the API server rejects an event with a longer text.
const MAX_NOTE: usize = 1024;
const MAX_WORD: usize = 128;

/// The RBAC rules of [`Recorder`] in the namespaces of its objects.
pub fn rules() -> Vec<Rule> {
    vec![Rule::new("events.k8s.io", &["events"], &["create", "patch"])]
}

/// The `type` of an Event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Severity {
    /// Expected.
    Normal,
    /// Needs attention.
    Warning,
}

impl Severity {
    fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// An event about an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EventRecord {
    /// Normal or Warning.
    pub kind: Severity,
    /// The reason, in one `CamelCase` word.
    pub reason: String,
    /// What the controller did, in one `CamelCase` word.
    pub action: String,
    /// The message for people.
    pub note: String,
}

impl EventRecord {
    /// A Normal event.
    pub fn normal(reason: &str, action: &str, note: impl Into<String>) -> Self {
        Self {
            kind: Severity::Normal,
            reason: reason.into(),
            action: action.into(),
            note: note.into(),
        }
    }

    /// A Warning event.
    pub fn warning(reason: &str, action: &str, note: impl Into<String>) -> Self {
        Self {
            kind: Severity::Warning,
            ..Self::normal(reason, action, note)
        }
    }

    /// The event, shortened to the API's limits.
    fn shortened(&self) -> Self {
        Self {
            kind: self.kind,
            reason: shorten(&self.reason, MAX_WORD),
            action: shorten(&self.action, MAX_WORD),
            note: shorten(&self.note, MAX_NOTE),
        }
    }
}

/// One row of a controller's table: the event for `condition` becoming `status`. Transitions without a row cause no
/// event.
#[derive(Clone, Copy, Debug)]
pub struct TransitionEvent {
    /// The condition's type.
    pub condition: &'static str,
    /// `True`, `False` or `Unknown`.
    pub status: &'static str,
    /// The type of the event.
    pub kind: Severity,
    /// The event's action.
    pub action: &'static str,
}

/// The events for the transitions from `old` to `new`: for every condition in the table whose status or reason changed,
/// or which is new. A change of the message or the time alone causes no event. It compares the stored conditions with the
/// new ones, not with the memory of this process, so a restart sends no events.
pub fn transitions(old: &[Condition], new: &[Condition], table: &[TransitionEvent]) -> Vec<EventRecord> {
    new.iter()
        .filter(|now| {
            !old.iter()
                .any(|was| was.type_ == now.type_ && was.status == now.status && was.reason == now.reason)
        })
        .filter_map(|now| {
            let row = table
                .iter()
                .find(|row| row.condition == now.type_ && row.status == now.status)?;
            Some(EventRecord {
                kind: row.kind,
                reason: now.reason.clone(),
                action: row.action.to_owned(),
                note: now.message.clone(),
            })
        })
        .collect()
}

/// The longest time that an event may delay its reconcile.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A repetition within this time belongs to the series; client-go uses the same six minutes.
const WINDOW: Duration = Duration::from_mins(6);
/// Limits the memory. A dropped series starts again with a new Event.
const CAPACITY: usize = 1024;

/// Publishes events as one controller. Clones share the record of recent events. Needs [`rules`].
#[derive(Clone)]
pub struct Recorder {
    client: Client,
    controller: String,
    instance: String,
    recent: Arc<Mutex<Recent>>,
    failures: Counter,
}

impl Recorder {
    /// `controller` is a qualified name such as `stanchion/user`; `instance` is the replica.
    pub fn new(client: Client, controller: impl Into<String>, instance_name: &str) -> Self {
        Self {
            client,
            controller: controller.into(),
            instance: instance(instance_name),
            recent: Arc::default(),
            failures: Counter::default(),
        }
    }

    /// Number of events that could not be written.
    pub fn failures(&self) -> Counter {
        self.failures.clone()
    }

    /// Publishes an event about `regarding` (see [`kube::Resource::object_ref`]). A failure is logged and counted.
    pub async fn publish(&self, regarding: &ObjectReference, record: &EventRecord) {
        let error: Box<dyn std::error::Error + Send + Sync> =
            match tokio::time::timeout(TIMEOUT, self.write(regarding, record.shortened())).await {
                Ok(Ok(())) => return,
                Ok(Err(error)) if is_expected(&error) => {
                    debug!(reason = record.reason, %error, "event not written");
                    return;
                }
                Ok(Err(error)) => error.into(),
                Err(elapsed) => elapsed.into(),
            };
        self.failures.inc();
        warn!(reason = record.reason, name = regarding.name, %error, "cannot write an event");
    }

    async fn write(&self, regarding: &ObjectReference, record: EventRecord) -> Result<(), kube::Error> {
        // Events about cluster-scoped objects are in `default`, where kubectl looks for them.
        let namespace = regarding.namespace.as_deref().unwrap_or("default");
        let events: Api<Event> = Api::namespaced(self.client.clone(), namespace);
        let key = Key {
            regarding: identify(regarding),
            record,
        };

        let known = self.recent.lock().again(&key, Instant::now());
        if let Some(Entry { name, count, .. }) = known {
            let series =
                json!({ "series": { "count": count, "lastObservedTime": MicroTime(ambient::now()) } });
            match events
                .patch(&name, &PatchParams::default(), &Patch::Merge(series))
                .await
            {
                // Events are deleted after an hour, or by a user.
                Err(kube::Error::Api(status)) if status.is_not_found() => self.recent.lock().forget(&key),
                result => return result.map(|_| ()),
            }
        }

        let event = self.event(regarding, &key.record, namespace);
        let name = event.metadata.name.clone().unwrap_or_default();
        match events.create(&PostParams::default(), &event).await {
            Ok(_) => {}
            // The name is random: it exists because the client sent this event twice.
            Err(kube::Error::Api(status)) if status.is_already_exists() => {}
            Err(error) => return Err(error),
        }
        self.recent.lock().created(key, name, Instant::now());
        Ok(())
    }

    fn event(&self, regarding: &ObjectReference, record: &EventRecord, namespace: &str) -> Event {
        Event {
            metadata: ObjectMeta {
                namespace: Some(namespace.to_owned()),
                name: Some(unique_name(regarding.name.as_deref().unwrap_or_default())),
                ..ObjectMeta::default()
            },
            type_: Some(record.kind.as_str().to_owned()),
            reason: Some(record.reason.clone()),
            action: Some(record.action.clone()),
            note: Some(record.note.clone()),
            event_time: Some(MicroTime(ambient::now())),
            regarding: Some(regarding.clone()),
            reporting_controller: Some(self.controller.clone()),
            reporting_instance: Some(self.instance.clone()),
            ..Event::default()
        }
    }
}

/// The uid, because another object may have the same name later.
fn identify(regarding: &ObjectReference) -> String {
    regarding.uid.clone().unwrap_or_else(|| {
        let part = |field: &Option<String>| field.clone().unwrap_or_default();
        [
            part(&regarding.kind),
            part(&regarding.namespace),
            part(&regarding.name),
        ]
        .join("/")
    })
}

/// The namespace or the Lease is gone, so nobody would read the event.
fn is_expected(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => status.is_not_found() || is_terminating(status),
        other => Fence::stopped(other),
    }
}

/// A unique name for an Event: the object's name and 64 random bits.
fn unique_name(object: &str) -> String {
    const MAX_NAME: usize = 253;
    let suffix = format!(".{:016x}", crate::ambient::bits());
    let end = object.floor_char_boundary(MAX_NAME - suffix.len());
    // A name must not have "." or "-" before the dot of the suffix.
    let stem = object.get(..end).unwrap_or_default().trim_end_matches(['.', '-']);
    format!("{stem}{suffix}")
}

/// `reportingInstance` has the same limit as the reason.
fn instance(name: &str) -> String {
    name.get(..name.floor_char_boundary(MAX_WORD))
        .unwrap_or_default()
        .to_owned()
}

/// The identity of an event. The note is part of it: the API server does not allow to change the note of an Event, so a
/// new message needs a new Event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    regarding: String,
    record: EventRecord,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    /// Name of the Event.
    name: String,
    /// The number of occurrences so far.
    count: i32,
    last: Instant,
}

/// The recent events, at most [`CAPACITY`] of them.
#[derive(Debug, Default)]
struct Recent(HashMap<Key, Entry>);

impl Recent {
    /// Counts one more occurrence, if the event is known and recent.
    fn again(&mut self, key: &Key, now: Instant) -> Option<Entry> {
        let entry = self
            .0
            .get_mut(key)
            .filter(|entry| now.duration_since(entry.last) < WINDOW)?;
        entry.count = entry.count.saturating_add(1);
        entry.last = now;
        Some(entry.clone())
    }

    /// Records an event that was just created.
    fn created(&mut self, key: Key, name: String, now: Instant) {
        if self.0.len() >= CAPACITY {
            self.0.retain(|_, entry| now.duration_since(entry.last) < WINDOW);
        }
        if self.0.len() >= CAPACITY
            && let Some(oldest) = self
                .0
                .iter()
                .min_by_key(|(_, entry)| entry.last)
                .map(|(key, _)| key.clone())
        {
            self.0.remove(&oldest);
        }
        self.0.insert(
            key,
            Entry {
                name,
                count: 1,
                last: now,
            },
        );
    }

    /// Drops an event that no longer exists in the cluster.
    fn forget(&mut self, key: &Key) {
        self.0.remove(key);
    }
}

#[cfg(test)]
mod tests;
