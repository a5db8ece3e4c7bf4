//! Objects that go through none of the steps: those that cannot be read, and those that are suspended or refused.

use std::time::Duration;

use kube::Resource as _;
use stanchion_postgres::error::plain;
use tracing::warn;

use super::Subject;
use crate::context::Reader;
use crate::driver::controller::{Read, Shared};
use crate::events::EventRecord;
use crate::lenient::{Flaw, MALFORMED};
use crate::problem::Problem;
use crate::reconciler::{Inactive, Reconciler};
use crate::telemetry::metrics::Finish;
use crate::text::shorten;

/// A condition's message is for people; the API server accepts up to 32 KiB.
const MESSAGE: usize = 2048;

/// The operator reconciles an object only if all of it can be read. The schema rejects malformed objects, but an older
/// schema may have accepted one: it gets a condition that names the field, does not affect other objects, and can be
/// deleted. A malformed status is our own, written by another version: the report replaces it, and the next pass goes on.
pub(super) fn may_live(flaws: &[Flaw]) -> Result<(), Problem> {
    if flaws.is_empty() {
        return Ok(());
    }
    let flawed = describe(flaws);
    if flaws.iter().all(|flaw| flaw.is_in("status")) {
        let message =
            format!("the status was written by another version of the operator: {flawed}; it is replaced");
        return Err(Problem::transient(MALFORMED, shorten(&message, MESSAGE)));
    }
    let message = format!("the object cannot be read: {flawed}; correct the field");
    Err(Problem::permanent(MALFORMED, shorten(&message, MESSAGE)))
}

/// A deleted object is cleaned up with the fields that can be read, unless a field that decides what to keep cannot.
pub(super) fn may_leave<R: Reconciler>(flaws: &[Flaw]) -> Result<(), Problem> {
    let flaws: Vec<Flaw> = flaws
        .iter()
        .filter(|flaw| flaw.concerns(R::DECIDES_DELETION))
        .cloned()
        .collect();
    if flaws.is_empty() {
        return Ok(());
    }
    let message = format!(
        "a field that decides what to keep on deletion is malformed: {}; correct the field",
        describe(&flaws)
    );
    Err(Problem::permanent(MALFORMED, shorten(&message, MESSAGE)))
}

/// The malformed fields of a status. What they record is not cleaned up with the rest.
fn unread(flaws: &[Flaw]) -> Vec<Flaw> {
    flaws
        .iter()
        .filter(|flaw| flaw.is_in("status"))
        .cloned()
        .collect()
}

fn describe(flaws: &[Flaw]) -> String {
    let each = flaws.iter().map(|flaw| format!("{}: {}", flaw.path, flaw.error));
    each.collect::<Vec<_>>().join("; ")
}

/// The event about an object of which nothing can be read. It contains values of the object.
fn event_of(flaws: &[Flaw]) -> EventRecord {
    EventRecord::warning(MALFORMED, "Read", plain(&describe(flaws)))
}

impl<R: Reconciler> Shared<R> {
    /// Only the metadata can be read, so there is no status to write: sends an event.
    pub(super) async fn unreadable(&self, object: &Read<R>) -> (Option<Duration>, Finish) {
        let event = event_of(object.flaws());
        warn!(
            error = event.note,
            "the object cannot be read as {}",
            R::Object::kind(&())
        );
        self.recorder.publish(&object.object_ref(&()), &event).await;
        (None, Finish::Terminal)
    }
}

impl<R: Reconciler> Subject<'_, R> {
    /// Sends an event about what a cleanup cannot know, because another version of the operator has recorded it.
    pub(super) async fn warn_of_unread(&self, flaws: &[Flaw]) {
        let unread = unread(flaws);
        if !unread.is_empty() {
            let event = event_of(&unread);
            let object = self.object.object_ref(&());
            self.shared.recorder.publish(&object, &event).await;
        }
    }

    /// What the controller does for an object that goes through none of the steps.
    pub(super) async fn inactive(&mut self, why: Inactive<'_>) -> Result<(), Problem> {
        self.step = "inactive";
        let context = self.shared.context(&self.object);
        let read = Reader::new(context.clone());
        let write = self.writer(context);
        let done = self
            .shared
            .reconciler
            .inactive(&read, &write, &self.object, why)
            .await;
        read.finish();
        done
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;
    use crate::lenient::salvage;

    #[derive(Debug, Deserialize)]
    enum Mode {
        Fast,
    }

    #[derive(Debug, Deserialize)]
    struct Thing {
        #[allow(dead_code, reason = "only its errors matter")]
        spec: Mode,
    }

    #[test]
    fn an_event_has_no_character_that_a_terminal_acts_on() {
        let (_, flaws) = salvage::<Thing>(json!({ "spec": "\u{1b}[31m\nforged" }));
        assert!(
            flaws.iter().any(|flaw| flaw.error.contains('\u{1b}')),
            "{flaws:?}"
        );
        let note = event_of(&flaws).note;
        assert!(note.contains("forged"), "{note}");
        assert!(!note.contains(char::is_control), "{note}");
    }
}
