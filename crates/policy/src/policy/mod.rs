//! The controller of `PostgresPolicy`. Each step of a reconcile is one file.

pub(crate) mod apply;
pub(crate) mod cleanup;
pub(crate) mod observe;
pub(crate) mod plan;
pub(crate) mod report;
pub(crate) mod target;
pub mod validate;

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use stanchion_api::policy::{GROUP, PostgresPolicyStatus, annotation, condition};
use stanchion_api::{PostgresPolicy, PostgresPolicyPlan};
use stanchion_kernel::events::TransitionEvent;
use stanchion_kernel::rbac::{OWN, READ, Rule};
use stanchion_kernel::watch::Watch;
use stanchion_kernel::watch::key;
use stanchion_kernel::{
    Done, Inactive, Inputs, Outcome, Problem, Reader, Reconciler, Report, Scope, Writer, ambient,
};
use tokio::sync::OnceCell;

use self::apply::Applied;
use self::cleanup::PolicyCleanup;
use self::observe::Observed;
use self::plan::Plan;
use self::target::Wanted;
use crate::converged_cache::ConvergedCache;
use crate::setup::Setup;

/// Enforces `PostgresPolicy` objects in their databases.
pub struct PolicyController {
    pub(crate) setup: Setup,
    pub(crate) converged: ConvergedCache,
    scope: Scope,
    /// When the claims of all policies were restored.
    surveyed: OnceCell<Timestamp>,
}

/// How long a deletion waits for other policies after a restart.
const OTHERS_TIMEOUT: Duration = Duration::from_mins(1);

impl PolicyController {
    /// A controller for one scope.
    pub fn new(setup: Setup, scope: Scope) -> Self {
        Self {
            setup,
            converged: ConvergedCache::default(),
            scope,
            surveyed: OnceCell::new(),
        }
    }

    /// Runs before the first reconcile: restores the claims of all policies from their status. Otherwise the first of
    /// two conflicting policies would be applied after each restart.
    pub(crate) async fn survey(&self, read: &Reader) -> Result<(), Problem> {
        let survey = async || {
            for policy in read.survey::<PostgresPolicy>(&self.scope).await? {
                if let Some(claim) = observe::remembered(&policy) {
                    self.setup.claims.remember(&key(&policy.metadata), claim);
                }
            }
            Ok::<_, Problem>(ambient::now())
        };
        self.surveyed.get_or_try_init(survey).await?;
        Ok(())
    }

    /// Whether a policy that this process has not reconciled yet may still be about to be.
    pub(crate) fn may_wait_for_others(&self) -> bool {
        let since = self.surveyed.get();
        since.is_some_and(|since| ambient::now().duration_since(*since).unsigned_abs() < OTHERS_TIMEOUT)
    }
}

impl Reconciler for PolicyController {
    type Object = PostgresPolicy;
    type Target = Wanted;
    type Observed = Observed;
    type Plan = Plan;
    type Applied = Applied;
    type Cleanup = PolicyCleanup;

    const NAME: &'static str = "policy";
    const ANNOTATIONS: &'static [&'static str] = &[annotation::REQUESTED_AT];
    const CONDITIONS: &'static [&'static str] = &[
        condition::READY,
        condition::DEGRADED,
        condition::DRIFTED,
        condition::CONFLICT,
        condition::PAUSED,
        condition::PASSWORD_IN_SPEC,
        condition::CONNECTED,
        condition::UNMANAGED,
    ];
    /// The original's events concern more than one condition each: `report::events` sends them.
    const TRANSITION_EVENTS: &'static [TransitionEvent] = &[];

    fn watches() -> Vec<Watch> {
        vec![
            Watch::referred::<Secret>(),
            Watch::referred::<ConfigMap>(),
            Watch::owned::<PostgresPolicyPlan>(),
        ]
    }

    fn lane(policy: &PostgresPolicy) -> Option<String> {
        let connection = &policy.spec.connection;
        let secret = connection.secret_ref.as_ref().map(|secret| secret.name.clone());
        secret.or_else(|| connection.params.as_ref()?.host.clone())
    }

    fn rules() -> Vec<Rule> {
        vec![
            Rule::new("", &["secrets"], READ),
            // Generated passwords, and the SQL of long plans, are written by server-side apply.
            Rule::new("", &["secrets", "configmaps"], &["create", "patch"]),
            Rule::new("", &["configmaps"], READ),
            Rule::new(GROUP, &["postgrespolicyplans"], OWN),
            Rule::new(GROUP, &["postgrespolicyplans/status"], &["patch"]),
            Rule::new(GROUP, &["postgrespolicyplans/finalizers"], &["update"]),
        ]
    }

    fn is_suspended(policy: &PostgresPolicy) -> bool {
        policy.spec.suspend
    }

    fn validate(policy: &PostgresPolicy) -> Result<Wanted, Problem> {
        validate::validate(policy)
    }

    async fn observe(&self, read: &Reader, wanted: &Wanted) -> Result<Observed, Problem> {
        let _running = self.setup.metrics.running();
        Ok(observe::observe(self, read, wanted).await)
    }

    fn plan(wanted: &Wanted, observed: &Observed, inputs: &mut Inputs<'_>) -> Result<Plan, Problem> {
        Ok(plan::plan(wanted, observed, inputs))
    }

    async fn apply(
        &self,
        write: &Writer,
        wanted: &Wanted,
        _: &Observed,
        plan: Plan,
        applied: &mut Applied,
    ) -> Result<Done, Problem> {
        let _running = self.setup.metrics.running();
        Box::pin(apply::apply(self, write, wanted, plan, applied)).await
    }

    /// A suspended policy claims nothing; an invalid one keeps what it has.
    async fn inactive(
        &self,
        _: &Reader,
        write: &Writer,
        policy: &PostgresPolicy,
        why: Inactive<'_>,
    ) -> Result<(), Problem> {
        match why {
            Inactive::Suspended => cleanup::release(self, write, &key(&policy.metadata)),
            Inactive::Invalid(_) => {}
        }
        Ok(())
    }

    fn report(
        policy: &PostgresPolicy,
        outcome: &Outcome<'_, Self>,
        now: Timestamp,
    ) -> Report<PostgresPolicyStatus> {
        report::report(policy, outcome, now)
    }

    fn report_suspended(policy: &PostgresPolicy, now: Timestamp) -> Report<PostgresPolicyStatus> {
        report::report_suspended(policy, now)
    }

    fn on_finished(&self, problem: Option<&Problem>, elapsed: Duration) {
        self.setup.metrics.ended(problem, elapsed);
    }
}
