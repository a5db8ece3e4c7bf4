//! Writes events without delaying or failing a reconcile.

use std::{sync::Arc, time::Duration};

use k8s_openapi::{
    api::{core::v1::ObjectReference, events::v1::Event},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{
    Api, Client,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
};
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use serde_json::json;
use tokio::time::Instant;
use tracing::{debug, warn};

use super::{
    EventRecord,
    record::{instance, unique_name},
    series::{Entry, Key, Recent},
};
use crate::ambient;
use crate::lease::Fence;

/// The longest time that an event may delay its reconcile.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Publishes events as one controller. Clones share the record of recent events. Needs [`super::rules`].
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

        let known = self.recent().again(&key, Instant::now());
        if let Some(Entry { name, count, .. }) = known {
            let series =
                json!({ "series": { "count": count, "lastObservedTime": MicroTime(ambient::now()) } });
            match events
                .patch(&name, &PatchParams::default(), &Patch::Merge(series))
                .await
            {
                // Events are deleted after an hour, or by a user.
                Err(kube::Error::Api(status)) if status.is_not_found() => self.recent().forget(&key),
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
        self.recent().created(key, name, Instant::now());
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

    /// The guarded value is valid after every statement, so a panic elsewhere does not break it.
    fn recent(&self) -> parking_lot::MutexGuard<'_, Recent> {
        self.recent.lock()
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
        kube::Error::Api(status) => {
            let causes = status.details.iter().flat_map(|details| &details.causes);
            status.is_not_found()
                || causes
                    .into_iter()
                    .any(|cause| cause.reason == "NamespaceTerminating")
        }
        other => Fence::stopped(other),
    }
}
