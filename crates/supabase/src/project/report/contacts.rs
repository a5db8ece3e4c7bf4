//! What the project stands on: how the last contact went.

use jiff::Timestamp;
use stanchion_api::supabase::{DependencyStatus, SupabaseProjectStatus, condition};
use stanchion_kernel::condition::{Conditions, Truth};

use super::super::contact::Contact;
use super::super::observe::Present;
use super::Seen;

/// States both contacts. A latency that changes is no news; a contact that is lost or found is.
pub(super) fn report(
    status: &mut SupabaseProjectStatus,
    conditions: &mut Conditions,
    present: &Present,
    outcome: &Seen<'_>,
    now: Timestamp,
) {
    let notes = outcome
        .applied
        .database
        .as_ref()
        .map_or(&[][..], |database| &database.notes);
    let limits: Vec<String> = notes.iter().map(ToString::to_string).collect();
    let dependencies = status.dependencies.get_or_insert_default();
    let rows = [
        (
            condition::POSTGRESQL_CONNECTED,
            &present.postgres,
            &mut dependencies.postgresql,
            limits.join("; "),
        ),
        (
            condition::S3_CONNECTED,
            &present.s3,
            &mut dependencies.s3,
            String::new(),
        ),
    ];
    for (kind, contact, slot, note) in rows {
        match contact {
            // What was said of it stands until it is asked.
            Contact::Unasked => {}
            Contact::Answered(latency) => {
                conditions.set(kind, Truth::True, "Connected", &note);
                if !slot.as_ref().is_some_and(|known| known.connected) {
                    *slot = Some(DependencyStatus {
                        connected: true,
                        last_connected_time: Some(now),
                        error: None,
                        latency_ms: Some(i32::try_from(latency.as_millis()).unwrap_or(i32::MAX)),
                    });
                }
            }
            Contact::Failed {
                reason,
                message,
                last,
                ..
            } => {
                conditions.set(kind, Truth::False, reason, message);
                let known = slot.take().unwrap_or_default();
                *slot = Some(DependencyStatus {
                    connected: false,
                    error: Some(message.clone()),
                    latency_ms: None,
                    last_connected_time: last.or(known.last_connected_time),
                });
            }
        }
    }
}
