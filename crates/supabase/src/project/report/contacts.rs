//! Conditions of the dependencies.

use jiff::Timestamp;
use stanchion_api::instance::TlsMode;
use stanchion_api::supabase::{DependencyStatus, SupabaseProjectStatus, condition};
use stanchion_kernel::condition::{Conditions, Truth};

use super::super::contact::Contact;
use super::super::observe::Present;
use super::super::target::Target;
use super::Seen;

/// A warning if the server is not verified, so that another one could take its place.
fn unverified(mode: TlsMode) -> Option<String> {
    let mode = match mode {
        TlsMode::VerifyCa | TlsMode::VerifyFull => return None,
        TlsMode::Disable => "disable",
        TlsMode::Prefer => "prefer",
        TlsMode::Require => "require",
    };
    Some(format!(
        "the server was not verified: database.sslMode is {mode}; verify-full checks its certificate"
    ))
}

/// Reports both checks. A changed latency is not written; a lost or restored connection is.
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
    let mut limits: Vec<String> = notes.iter().map(ToString::to_string).collect();
    if let Some(Target::Project(wanted)) = outcome.target {
        limits.extend(unverified(wanted.spec.database.ssl_mode));
    }
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
            // The previous condition stays until the next check.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_was_not_verified_is_said_to_be() {
        for mode in [TlsMode::Disable, TlsMode::Prefer, TlsMode::Require] {
            assert!(unverified(mode).unwrap().contains("not verified"), "{mode:?}");
        }
        for mode in [TlsMode::VerifyCa, TlsMode::VerifyFull] {
            assert_eq!(unverified(mode), None);
        }
    }
}
