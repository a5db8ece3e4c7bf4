//! The controller of `GitlabInstance`. Each step of a reconcile is one file.

pub mod apply;
pub mod cache;
pub mod cleanup;
pub mod observe;
pub mod plan;
pub mod prerequisites;
pub mod report;
pub mod target;
#[cfg(test)]
mod tests;
pub mod validate;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::RoleBinding;
use stanchion_api::gitlab::{FINALIZER, GitlabInstanceStatus};
use stanchion_api::{GitlabInstance, GitlabProfile, GitlabVersionMap};
use stanchion_kernel::events::TransitionEvent;
use stanchion_kernel::external::ExternalKind;
use stanchion_kernel::problem::Cause;
use stanchion_kernel::rbac::Rule;
use stanchion_kernel::watch::Watch;
use stanchion_kernel::{Outcome, Problem, Reader, Reconciler, Report, Writer};

use crate::Setup;
use crate::account;
use crate::backends::kinds;
use crate::flux;

/// What to do for an object.
pub enum Target {
    /// An active instance.
    Ensure(Box<target::Wanted>),
    /// A suspended instance: nothing is changed.
    Suspended,
    /// A deleted instance.
    Cleanup(cleanup::CleanupTarget),
}

/// What was observed for it.
pub enum Observed {
    /// Of an instance that is not being deleted.
    Ensure(Box<observe::Observed>),
    /// Nothing was read.
    Suspended,
    /// Of a deleted instance.
    Cleanup(Box<cleanup::CleanupState>),
}

/// What is planned for it.
pub enum Plan {
    /// For an instance that is not being deleted.
    Ensure(plan::Plan),
    /// Nothing.
    Suspended,
    /// For a deleted instance.
    Cleanup(cleanup::CleanupPlan),
}

/// Reconciles `GitlabInstance` objects.
pub struct GitlabController {
    setup: Setup,
    cache: cache::InstanceCache,
}

impl GitlabController {
    /// A controller with these connections.
    pub fn new(setup: Setup) -> Self {
        Self {
            setup,
            cache: cache::InstanceCache::default(),
        }
    }
}

/// The kinds of Flux and the operators of the backends.
static EXTERNAL_KINDS: [&ExternalKind; 7] = [
    &flux::HELM_RELEASE,
    &flux::HELM_REPOSITORY,
    &kinds::PERCONA,
    &kinds::REDIS,
    &kinds::REDIS_REPLICATION,
    &kinds::REDIS_SENTINEL,
    &kinds::ELASTICSEARCH,
];

impl Reconciler for GitlabController {
    type Object = GitlabInstance;
    type Target = Target;
    type Observed = Observed;
    type Plan = Plan;
    type Applied = apply::Applied;

    const NAME: &'static str = "gitlab";
    const FINALIZER: Option<&'static str> = Some(FINALIZER);
    const CONDITIONS: &'static [&'static str] = report::CONDITIONS;
    const TRANSITION_EVENTS: &'static [TransitionEvent] = report::TRANSITION_EVENTS;

    fn watches() -> Vec<Watch> {
        vec![
            Watch::referred::<Secret>(),
            Watch::referred::<ConfigMap>(),
            Watch::referred::<StatefulSet>(),
            Watch::referred::<ServiceAccount>(),
            Watch::referred::<RoleBinding>(),
            Watch::cluster_wide::<GitlabProfile>(),
            Watch::cluster_wide::<GitlabVersionMap>(),
        ]
    }

    fn external_kinds() -> &'static [&'static ExternalKind] {
        &EXTERNAL_KINDS
    }

    fn rules() -> Vec<Rule> {
        const MAKE: &[&str] = &["get", "create", "patch"];
        let mut rules = vec![
            // The Secrets of the buckets are deleted with their instance.
            Rule::new("", &["secrets"], &["get", "create", "patch", "delete"]),
            Rule::new("", &["configmaps"], MAKE),
            Rule::new("apps", &["statefulsets"], &["get"]),
            Rule::new(
                "k8s.bnerd.com",
                &["gitlabprofiles", "gitlabversionmaps"],
                &["get"],
            )
            .cluster_wide(),
            Rule::new(
                flux::HELM_RELEASE.group,
                &[flux::HELM_RELEASE.plural],
                &["delete"],
            ),
        ];
        rules.extend(account::operator_rules());
        rules.extend(
            EXTERNAL_KINDS
                .iter()
                .map(|kind| Rule::new(kind.group, &[kind.plural], MAKE)),
        );
        rules
    }

    fn validate(instance: &GitlabInstance) -> Result<Target, Problem> {
        if instance.spec.suspend {
            return Ok(Target::Suspended);
        }
        Ok(Target::Ensure(Box::new(validate::validate(instance)?)))
    }

    fn cleanup_target(instance: &GitlabInstance) -> Target {
        Target::Cleanup(cleanup::target(instance))
    }

    /// An instance that was never applied has nothing to clean up.
    fn needs_finalizer(target: &Target) -> bool {
        !matches!(target, Target::Suspended)
    }

    async fn observe(&self, read: &Reader, target: &Target) -> Result<Observed, Problem> {
        match target {
            Target::Ensure(wanted) => {
                let observed = observe::observe(&self.setup, &self.cache, read, wanted).await?;
                Ok(Observed::Ensure(Box::new(observed)))
            }
            Target::Cleanup(cleanup) => {
                self.cache.forget(&read.parent().uid);
                let state = cleanup::observe(read, cleanup).await?;
                Ok(Observed::Cleanup(Box::new(state)))
            }
            Target::Suspended => Ok(Observed::Suspended),
        }
    }

    fn plan(target: &Target, observed: &Observed) -> Result<Plan, Problem> {
        match (target, observed) {
            (Target::Ensure(wanted), Observed::Ensure(observed)) => {
                Ok(Plan::Ensure(plan::plan(wanted, observed, &mut rand::rng())?))
            }
            (Target::Cleanup(cleanup), Observed::Cleanup(state)) => {
                Ok(Plan::Cleanup(cleanup::plan(cleanup, state)?))
            }
            _ => Ok(Plan::Suspended),
        }
    }

    async fn apply(
        &self,
        write: &Writer,
        target: &Target,
        observed: &Observed,
        plan: Plan,
        applied: &mut apply::Applied,
    ) -> Result<(), Problem> {
        // The state after a failed apply is unknown.
        self.cache.forget(&write.parent().uid);
        let blocker = match plan {
            Plan::Ensure(plan) => {
                applied.written.storage_resolved = plan.storage_resolved;
                apply::apply(write, plan.changes, applied).await?;
                if let (Target::Ensure(wanted), Observed::Ensure(observed)) = (target, observed) {
                    self.cache.remember(wanted, &observed.current, applied);
                }
                plan.blocker
            }
            Plan::Cleanup(plan) => {
                apply::apply(write, plan.changes, applied).await?;
                plan.blocker
            }
            Plan::Suspended => None,
        };
        blocker.map_or(Ok(()), |blocker| Err(blocker.problem()))
    }

    fn report(
        instance: &GitlabInstance,
        outcome: &Outcome<'_, Self>,
        now: Timestamp,
    ) -> Report<GitlabInstanceStatus> {
        let problem = outcome.problem;
        let observed = match (outcome.target, outcome.observed) {
            (Some(Target::Suspended), _) => return report::report_suspended(instance, now),
            (Some(Target::Cleanup(_)), Some(Observed::Cleanup(state))) => {
                return cleanup::report(instance, Some(state), problem);
            }
            (Some(Target::Cleanup(_)), _) => return cleanup::report(instance, None, problem),
            (Some(Target::Ensure(wanted)), Some(Observed::Ensure(observed))) => {
                Some((wanted.as_ref(), observed.as_ref()))
            }
            _ => None,
        };
        let pass = report::Progressed {
            observed,
            applied: outcome.applied,
            failure: problem.filter(|problem| !problem.is(Cause::Blocked)),
        };
        report::report(instance, &pass, now)
    }
}
