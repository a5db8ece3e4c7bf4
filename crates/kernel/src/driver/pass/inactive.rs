//! Objects that go through none of the steps: those that cannot be read, and those that are suspended or refused.

use std::time::Duration;

use kube::Resource as _;
use stanchion_postgres::error::plain;
use tracing::warn;

use super::Subject;
use crate::context::Reader;
use crate::driver::controller::{Read, Shared};
use crate::events::EventRecord;
use crate::lenient::Flaw;
use crate::problem::Problem;
use crate::reconciler::{Inactive, Reconciler};
use crate::telemetry::metrics::Finish;
use crate::text::shorten;

/// The reason of a problem with an object that cannot be read.
const MALFORMED: &str = "Malformed";
/// A condition's message is for people; the API server accepts up to 32 KiB.
const MESSAGE: usize = 2048;

/// The operator reconciles an object only if all of it can be read. The schema rejects malformed objects, but an older
/// schema may have accepted one: it gets a condition that names the field, does not affect other objects, and can be
/// deleted.
pub(super) fn may_live(flaws: &[Flaw]) -> Result<(), Problem> {
    if flaws.is_empty() {
        return Ok(());
    }
    let message = format!(
        "the object cannot be read: {}; correct the field",
        describe(flaws)
    );
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
