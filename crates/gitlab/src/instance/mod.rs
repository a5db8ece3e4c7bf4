//! The controller of `GitlabInstance`. Each step of a reconcile is one file.

pub mod apply;
pub mod cache;
pub mod cleanup;
pub mod database;
pub mod observe;
pub mod plan;
pub mod prerequisites;
pub mod report;
pub mod secret_values;
pub mod secrets;
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
use stanchion_kernel::rbac::Rule;
use stanchion_kernel::watch::Watch;
use stanchion_kernel::{Outcome, Problem, Reader, Reconciler, Report, Writer};

use crate::Setup;
use crate::account;
use crate::backends::kinds;
use crate::flux;

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
    type Target = target::Target;
    type Observed = observe::Observed;
    type Plan = plan::Plan;
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

    fn validate(instance: &GitlabInstance) -> Result<Self::Target, Problem> {
        validate::validate(instance)
    }

    fn cleanup_target(instance: &GitlabInstance) -> Self::Target {
        validate::cleanup_target(instance)
    }

    /// An instance that was never applied has nothing to clean up.
    fn needs_finalizer(target: &Self::Target) -> bool {
        !matches!(target, target::Target::Suspended)
    }

    async fn observe(&self, read: &Reader, target: &Self::Target) -> Result<Self::Observed, Problem> {
        observe::observe(&self.setup, &self.cache, read, target).await
    }

    fn plan(target: &Self::Target, observed: &Self::Observed) -> Result<Self::Plan, Problem> {
        plan::plan(target, observed)
    }

    async fn apply(
        &self,
        write: &Writer,
        target: &Self::Target,
        observed: &Self::Observed,
        plan: Self::Plan,
        applied: &mut Self::Applied,
    ) -> Result<(), Problem> {
        // The state after a failed apply is unknown.
        self.cache.forget(&write.parent().uid);
        let blocker = apply::apply(write, plan, applied).await?;
        if let (target::Target::Ensure(wanted), observe::Observed::Ensure(current)) = (target, observed) {
            self.cache.remember(wanted, current, applied);
        }
        blocker.map_or(Ok(()), |blocker| Err(blocker.problem()))
    }

    fn report(
        instance: &GitlabInstance,
        outcome: &Outcome<'_, Self>,
        now: Timestamp,
    ) -> Report<GitlabInstanceStatus> {
        report::report(instance, outcome, now)
    }
}
