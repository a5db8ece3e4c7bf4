//! Events of the simulated workloads, as `kubectl describe` and `kubectl events` show them.

use serde_json::json;

use super::super::actor::note;
use super::Simulation;
use crate::store::Object;

/// An Event of a component.
pub(super) struct EventNote<'a> {
    pub(super) by: &'static str,
    pub(super) warning: bool,
    pub(super) reason: &'static str,
    pub(super) message: &'a str,
}

impl Simulation {
    /// Writes an Event about an object. Failures are ignored.
    pub(super) async fn record_event(&self, about: &Object, noted: EventNote<'_>) {
        let EventNote {
            by,
            warning,
            reason,
            message,
        } = noted;
        let clock = &self.actor.server.clock;
        let now = clock.seconds();
        let event = json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": {"name": format!("{}.{}", about.name(), clock.suffix(10)), "namespace": about.namespace()},
            "involvedObject": {
                "apiVersion": about.text("/apiVersion"), "kind": about.text("/kind"), "name": about.name(),
                "namespace": about.namespace(), "uid": about.uid(), "resourceVersion": about.revision().to_string(),
            },
            "type": if warning { "Warning" } else { "Normal" }, "reason": reason, "message": message,
            "source": {"component": by}, "reportingComponent": by,
            "firstTimestamp": now, "lastTimestamp": now, "count": 1,
        });
        note(
            "event",
            self.actor.create("/events", about.namespace(), &event).await,
        );
    }
}
