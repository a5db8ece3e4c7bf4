//! The controller of `PostgresPolicy`. Each step of a reconcile is one file.

pub mod apply;
pub mod cleanup;
pub mod observe;
pub mod plan;
pub mod report;
pub mod target;
pub mod validate;

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use stanchion_api::policy::{FINALIZER, GROUP, PostgresPolicyStatus, annotation, condition};
use stanchion_api::{PostgresPolicy, PostgresPolicyPlan};
use stanchion_kernel::events::TransitionEvent;
use stanchion_kernel::rbac::{OWN, READ, Rule};
use stanchion_kernel::watch::Watch;
use stanchion_kernel::watch::primary::key;
use stanchion_kernel::{Outcome, Problem, Reader, Reconciler, Report, Scope, Writer};
use tokio::sync::OnceCell;

use self::cleanup::Granted;
use self::target::Target;
use crate::converged_cache::ConvergedCache;
use crate::setup::Setup;

/// Enforces `PostgresPolicy` objects in their databases.
pub struct PolicyController {
    pub(crate) setup: Setup,
    pub(crate) converged: ConvergedCache,
    scope: Scope,
    surveyed: OnceCell<()>,
}

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
            Ok::<_, Problem>(())
        };
        self.surveyed.get_or_try_init(survey).await?;
        Ok(())
    }
}

/// The state of a reconcile, by the path that it takes.
pub enum Path<E, C> {
    /// The policy is enforced.
    Ensure(E),
    /// The policy is suspended.
    Suspended,
    /// The policy is being deleted.
    Cleanup(C),
}

impl Reconciler for PolicyController {
    type Object = PostgresPolicy;
    type Target = Target;
    type Observed = Path<observe::Observed, Option<Granted>>;
    type Plan = Path<plan::Plan, ()>;
    type Applied = apply::Applied;

    const NAME: &'static str = "policy";
    const FINALIZER: Option<&'static str> = Some(FINALIZER);
    const ANNOTATIONS: &'static [&'static str] = &[annotation::REQUESTED_AT];
    const CONDITIONS: &'static [&'static str] = &[
        condition::READY,
        condition::DEGRADED,
        condition::DRIFTED,
        condition::CONFLICT,
        condition::PAUSED,
        condition::PASSWORD_IN_SPEC,
        condition::CONNECTED,
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

    fn validate(policy: &PostgresPolicy) -> Result<Target, Problem> {
        validate::validate(policy)
    }

    fn cleanup_target(policy: &PostgresPolicy) -> Target {
        validate::cleanup_target(policy)
    }

    async fn observe(&self, read: &Reader, target: &Target) -> Result<Self::Observed, Problem> {
        let _running = self.setup.metrics.running();
        Ok(match target {
            Target::Suspended(_) => Path::Suspended,
            Target::Ensure(wanted) => Path::Ensure(observe::observe(self, read, wanted).await?),
            Target::Cleanup(cleanup) => Path::Cleanup(cleanup::observe(self, read, cleanup).await?),
        })
    }

    fn plan(target: &Target, observed: &Self::Observed) -> Result<Self::Plan, Problem> {
        Ok(match (target, observed) {
            (Target::Ensure(wanted), Path::Ensure(observed)) => {
                Path::Ensure(plan::plan(wanted, observed, &mut rand::rng()))
            }
            (_, Path::Cleanup(_)) => Path::Cleanup(()),
            _ => Path::Suspended,
        })
    }

    async fn apply(
        &self,
        write: &Writer,
        target: &Target,
        observed: &Self::Observed,
        plan: Self::Plan,
        applied: &mut apply::Applied,
    ) -> Result<(), Problem> {
        let _running = self.setup.metrics.running();
        match (target, observed, plan) {
            (Target::Ensure(wanted), _, Path::Ensure(plan)) => {
                Box::pin(apply::apply(self, write, wanted, plan, applied)).await
            }
            (Target::Cleanup(cleanup), Path::Cleanup(granted), _) => {
                cleanup::apply(self, write, cleanup, granted.as_ref()).await
            }
            (Target::Suspended(policy), ..) => {
                cleanup::release(self, write, &policy.key);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn report(
        policy: &PostgresPolicy,
        outcome: &Outcome<'_, Self>,
        now: Timestamp,
    ) -> Report<PostgresPolicyStatus> {
        report::report(policy, outcome, now)
    }

    fn on_finished(&self, problem: Option<&Problem>, elapsed: Duration) {
        self.setup.metrics.ended(problem, elapsed);
    }
}
