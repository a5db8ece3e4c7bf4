//! The controller of `GitlabInstance`. Each step of a reconcile is one file.

pub(crate) mod apply;
pub(crate) mod cache;
pub(crate) mod cleanup;
pub(crate) mod observe;
pub(crate) mod plan;
pub(crate) mod prerequisites;
pub(crate) mod report;
pub(crate) mod target;
#[cfg(test)]
mod tests;
pub(crate) mod validate;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::RoleBinding;
use stanchion_api::gitlab::GitlabInstanceStatus;
use stanchion_api::{GitlabInstance, GitlabProfile, GitlabVersionMap};
use stanchion_kernel::events::TransitionEvent;
use stanchion_kernel::external::ExternalKind;
use stanchion_kernel::rbac::Rule;
use stanchion_kernel::watch::Watch;
use stanchion_kernel::{Done, Inputs, Outcome, Problem, Reader, Reconciler, Report, Writer};

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
    // Large values are boxed, and so are the futures that make them: a pass holds and moves them.
    type Target = Box<target::Wanted>;
    type Observed = Box<observe::Observed>;
    type Plan = plan::Plan;
    type Applied = apply::Applied;
    type Cleanup = cleanup::GitlabCleanup;

    const NAME: &'static str = "gitlab";
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

    fn is_suspended(instance: &GitlabInstance) -> bool {
        instance.spec.suspend
    }

    fn validate(instance: &GitlabInstance) -> Result<Self::Target, Problem> {
        validate::validate(instance).map(Box::new)
    }

    async fn observe(&self, read: &Reader, wanted: &Self::Target) -> Result<Self::Observed, Problem> {
        let observed = Box::pin(observe::observe(&self.setup, &self.cache, read, wanted)).await?;
        Ok(Box::new(observed))
    }

    fn plan(
        wanted: &Self::Target,
        observed: &Self::Observed,
        inputs: &mut Inputs<'_>,
    ) -> Result<plan::Plan, Problem> {
        plan::plan(wanted, observed, inputs)
    }

    async fn apply(
        &self,
        write: &Writer,
        wanted: &Self::Target,
        observed: &Self::Observed,
        plan: plan::Plan,
        applied: &mut apply::Applied,
    ) -> Result<Done, Problem> {
        let done = apply::apply(write, plan, applied).await?;
        self.cache.remember(wanted, &observed.current, applied);
        Ok(done)
    }

    fn report(
        instance: &GitlabInstance,
        outcome: &Outcome<'_, Self>,
        now: Timestamp,
    ) -> Report<GitlabInstanceStatus> {
        report::report(instance, outcome, now)
    }

    fn report_suspended(instance: &GitlabInstance, now: Timestamp) -> Report<GitlabInstanceStatus> {
        report::report_suspended(instance, now)
    }
}
