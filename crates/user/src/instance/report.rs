//! Builds the status: the condition of the connection, and the properties of the server.

use std::time::Duration;

use jiff::Timestamp;
use stanchion_api::instance::CONNECTED;
use stanchion_api::status::Status;
use stanchion_api::{PostgresInstance, PostgresInstanceStatus};
use stanchion_kernel::condition::{Conditions, Truth};
use stanchion_kernel::{Outcome, Report};

use super::InstanceController;
use crate::server;

/// How often a reachable server is checked.
const INTERVAL: Duration = Duration::from_mins(10);

/// The status after a reconcile.
pub(super) fn report(
    instance: &PostgresInstance,
    outcome: &Outcome<'_, InstanceController>,
    now: Timestamp,
) -> Report<PostgresInstanceStatus> {
    let mut status = instance.status.clone().unwrap_or_default();
    let mut conditions = Conditions::new(status.conditions(), instance.metadata.generation, now);
    match (outcome.observed, outcome.problem) {
        (_, Some(problem)) => {
            status.message = Some(problem.message.clone());
            conditions.set(CONNECTED, Truth::False, problem.reason, &problem.message);
        }
        (Some(current), None) => {
            let role = if current.replica {
                "a replica, which cannot be written to"
            } else {
                "PostgreSQL"
            };
            let (verified, log) = (server::verification(current.security), &current.log);
            let message = format!(
                "connected to {}: {role} {}{verified}{log}",
                current.address, current.version
            );
            conditions.set(CONNECTED, Truth::True, "Connected", &message);
            status.message = Some(message);
            status.version = Some(current.version.clone());
            status.system_identifier = Some(current.system.clone());
        }
        (None, None) => {}
    }
    status.conditions = conditions.finish();
    Report {
        requeue_after: Some(INTERVAL),
        ..Report::new(status)
    }
}
