//! The controller of `PostgresInstance`: checks the server's connection and reports its properties.
//!
//! It fits into one file: it only reads, so there is nothing to plan and nothing to apply.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use stanchion_api::instance::CONNECTED;
use stanchion_api::status::Status;
use stanchion_api::{PostgresInstance, PostgresInstanceStatus};
use stanchion_kernel::condition::{Conditions, Truth};
use stanchion_kernel::events::{Severity, TransitionEvent};
use stanchion_kernel::rbac::{READ, Rule};
use stanchion_kernel::watch::Watch;
use stanchion_kernel::{Outcome, Problem, Reader, Reconciler, Report, Writer};
use stanchion_postgres::session::Security;

use crate::contact;
use crate::server;
use crate::setup::Setup;

/// How often a reachable server is checked.
const INTERVAL: Duration = Duration::from_mins(10);

/// Reports whether the servers of `PostgresInstance` objects are reachable.
pub struct InstanceController {
    setup: Setup,
}

impl InstanceController {
    /// A controller with these connections.
    pub fn new(setup: Setup) -> Self {
        Self { setup }
    }
}

/// The server's properties.
pub struct Current {
    address: String,
    version: String,
    system: String,
    replica: bool,
    /// How far the server was verified.
    security: Security,
    log: String,
}

impl Reconciler for InstanceController {
    type Object = PostgresInstance;
    type Target = PostgresInstance;
    type Observed = Current;
    type Plan = ();
    type Applied = ();

    const NAME: &'static str = "instance";
    const FINALIZER: Option<&'static str> = None;
    const CONDITIONS: &'static [&'static str] = &[CONNECTED];
    const TRANSITION_EVENTS: &'static [TransitionEvent] = &[
        TransitionEvent {
            condition: CONNECTED,
            status: "True",
            kind: Severity::Normal,
            action: "Connect",
        },
        TransitionEvent {
            condition: CONNECTED,
            status: "False",
            kind: Severity::Warning,
            action: "Connect",
        },
    ];

    fn watches() -> Vec<Watch> {
        vec![Watch::referred::<Secret>()]
    }

    fn rules() -> Vec<Rule> {
        vec![Rule::new("", &["secrets"], READ)]
    }

    fn validate(instance: &PostgresInstance) -> Result<PostgresInstance, Problem> {
        Ok(instance.clone())
    }

    fn cleanup_target(instance: &PostgresInstance) -> PostgresInstance {
        instance.clone()
    }

    async fn observe(&self, read: &Reader, instance: &PostgresInstance) -> Result<Current, Problem> {
        let server = server::of_instance(read, &self.setup, instance).await?;
        let session = self.setup.pools.get(&server.target).await?;
        let inspected = session.inspect(&[]).await?;
        Ok(Current {
            address: server.target.to_string(),
            version: version(session.version()),
            system: session.identity().system().to_owned(),
            replica: inspected.0.in_recovery,
            security: session.security(),
            log: contact::log(&inspected.0),
        })
    }

    fn plan(_: &PostgresInstance, _: &Current) -> Result<(), Problem> {
        Ok(())
    }

    async fn apply(
        &self,
        _: &Writer,
        _: &PostgresInstance,
        _: &Current,
        (): (),
        (): &mut (),
    ) -> Result<(), Problem> {
        Ok(())
    }

    fn report(
        instance: &PostgresInstance,
        outcome: &Outcome<'_, Self>,
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
                let (reach, log) = (contact::reach(current.security), &current.log);
                let message = format!(
                    "connected to {}: {role} {}{reach}{log}",
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
}

/// `150018` is 15.18.
fn version(number: u32) -> String {
    format!("{}.{}", number / 10_000, number % 10_000)
}
