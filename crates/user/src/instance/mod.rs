//! The controller of `PostgresInstance`: checks the server's connection and reports its properties.
//!
//! It only reads, so there is nothing to plan and nothing to apply. Each step of a reconcile is one file, as for the other kinds.

mod apply;
mod observe;
mod plan;
mod report;
mod validate;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use stanchion_api::instance::CONNECTED;
use stanchion_api::{PostgresInstance, PostgresInstanceStatus};
use stanchion_kernel::events::{Severity, TransitionEvent};
use stanchion_kernel::rbac::{READ, Rule};
use stanchion_kernel::watch::Watch;
use stanchion_kernel::{Done, Inputs, NoCleanup, Outcome, Problem, Reader, Reconciler, Report, Writer};

use self::observe::Current;
use self::plan::Plan;
use crate::server::Setup;

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

impl Reconciler for InstanceController {
    type Object = PostgresInstance;
    type Target = PostgresInstance;
    type Observed = Current;
    type Plan = Plan;
    type Applied = ();
    type Cleanup = NoCleanup<Self>;

    const NAME: &'static str = "instance";
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

    fn lane(instance: &PostgresInstance) -> Option<String> {
        Some(format!("{}:{}", instance.spec.host, instance.spec.port))
    }

    fn rules() -> Vec<Rule> {
        vec![Rule::new("", &["secrets"], READ)]
    }

    fn validate(instance: &PostgresInstance) -> Result<PostgresInstance, Problem> {
        Ok(validate::validate(instance))
    }

    async fn observe(&self, read: &Reader, instance: &PostgresInstance) -> Result<Current, Problem> {
        observe::observe(&self.setup, read, instance).await
    }

    fn plan(instance: &PostgresInstance, current: &Current, _: &mut Inputs<'_>) -> Result<Plan, Problem> {
        Ok(plan::plan(instance, current))
    }

    async fn apply(
        &self,
        _: &Writer,
        _: &PostgresInstance,
        _: &Current,
        plan: Plan,
        (): &mut (),
    ) -> Result<Done, Problem> {
        Ok(apply::apply(plan))
    }

    fn report(
        instance: &PostgresInstance,
        outcome: &Outcome<'_, Self>,
        now: Timestamp,
    ) -> Report<PostgresInstanceStatus> {
        report::report(instance, outcome, now)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// One server that does not answer delays no instance on another server.
    #[test]
    fn instances_of_one_server_share_a_lane() {
        let lane = |name: &str, host: &str, port: u16| {
            let instance = json!({
                "apiVersion": "db.example.com/v1alpha1", "kind": "PostgresInstance", "metadata": { "name": name },
                "spec": { "host": host, "port": port, "adminSecretRef": { "name": name } },
            });
            InstanceController::lane(&serde_json::from_value(instance).unwrap())
        };
        let first = lane("first", "db", 5432);
        assert!(first.is_some());
        assert_eq!(first, lane("second", "db", 5432));
        assert_ne!(first, lane("third", "db", 5433));
        assert_ne!(first, lane("fourth", "other", 5432));
    }
}
