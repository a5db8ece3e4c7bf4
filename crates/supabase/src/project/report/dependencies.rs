//! Conditions of the dependencies.

use jiff::Timestamp;
use stanchion_api::supabase::{DependencyStatus, SupabaseProjectStatus, condition};
use stanchion_kernel::condition::{Conditions, Truth};
use stanchion_postgres::Security;

use super::super::dependency_check::CheckResult;
use super::super::observe::Observed;
use super::ProjectOutcome;

/// Whether the server that answered proved its identity: if not, another one could take its place.
const fn identity(security: Security) -> &'static str {
    match (security.verified, security.encrypted) {
        (true, _) => "the server was verified",
        (false, true) => {
            "the connection is encrypted, but the server was not verified: set database.sslMode verify-full"
        }
        (false, false) => {
            "the connection is not encrypted, and the server was not verified: set database.sslMode verify-full"
        }
    }
}

/// Reports both checks. A changed latency is not written; a lost or restored connection is.
pub(super) fn report(
    status: &mut SupabaseProjectStatus,
    conditions: &mut Conditions,
    observed: &Observed,
    outcome: &ProjectOutcome<'_>,
    now: Timestamp,
) {
    // Without a check, the previous conditions stay.
    let Some((postgres, s3)) = observed.checks() else {
        return;
    };
    let notes = outcome
        .applied
        .database
        .as_ref()
        .map_or(&[][..], |database| &database.notes);
    let limits = notes.iter().map(ToString::to_string);
    let dependencies = status.dependencies.get_or_insert_default();
    let rows = [
        (
            condition::POSTGRESQL_CONNECTED,
            postgres,
            &mut dependencies.postgresql,
            limits.collect::<Vec<_>>(),
        ),
        (condition::S3_CONNECTED, s3, &mut dependencies.s3, Vec::new()),
    ];
    for (kind, contact, slot, mut notes) in rows {
        match contact {
            CheckResult::Reachable { latency, security } => {
                if let Some(security) = security {
                    notes.insert(0, identity(*security).to_owned());
                }
                conditions.set(kind, Truth::True, "Connected", &notes.join("; "));
                if !slot.as_ref().is_some_and(|known| known.connected) {
                    *slot = Some(DependencyStatus {
                        connected: true,
                        last_connected_time: Some(now),
                        error: None,
                        latency_ms: Some(i32::try_from(latency.as_millis()).unwrap_or(i32::MAX)),
                    });
                }
            }
            CheckResult::Failed {
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
    fn an_unverified_server_is_reported() {
        let said = |encrypted, verified| identity(Security { encrypted, verified });
        assert_eq!(said(true, true), "the server was verified");
        // A local socket.
        assert_eq!(said(false, true), "the server was verified");
        for encrypted in [true, false] {
            assert!(said(encrypted, false).contains("the server was not verified"));
        }
        assert!(said(false, false).contains("not encrypted"));
    }
}
