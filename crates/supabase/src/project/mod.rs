//! The controller of `SupabaseProject`. Each step of a reconcile is one file.

pub(crate) mod apply;
pub(crate) mod cache;
pub(crate) mod children;
pub(crate) mod cleanup;
pub(crate) mod dependency_check;
pub(crate) mod key_secret;
pub(crate) mod observe;
pub(crate) mod plan;
pub(crate) mod pods;
pub(crate) mod reasons;
pub(crate) mod render_inputs;
pub(crate) mod report;
pub(crate) mod secrets;
pub(crate) mod security;
pub(crate) mod target;
pub(crate) mod validate;

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use stanchion_api::SupabaseProject;
use stanchion_api::supabase::{DeletionPolicy, SupabaseProjectStatus, annotation};
use stanchion_kernel::children::ChildKinds;
use stanchion_kernel::events::TransitionEvent;
use stanchion_kernel::rbac::{OWN, READ, Rule};
use stanchion_kernel::redact::FingerprintKey;
use stanchion_kernel::watch::Watch;
use stanchion_kernel::watch::dependencies::Key;
use stanchion_kernel::{Done, Inputs, Outcome, Problem, Reader, Reconciler, Report, Writer};
use stanchion_postgres::{Listener, Pools};
use tokio::sync::Mutex;

pub(crate) use validate::validate as check;

use cache::ProjectCache;

/// State that the controller needs. Clones share it.
#[derive(Clone)]
pub struct Setup {
    /// The connections of this process.
    pub pools: Pools,
    /// Seals ownership marks, which are stored in a server and read again.
    pub fingerprints: Arc<FingerprintKey>,
    /// The allowed prefixes of images; empty means any.
    pub allowed_images: Vec<String>,
}

/// Reconciles `SupabaseProject` objects.
pub struct ProjectController {
    cache: ProjectCache,
    /// The servers that somebody has lost, whichever controller it was.
    losses: Mutex<Listener>,
    /// The deleted projects whose database could not be cleaned up yet.
    waiting: cleanup::Waiting,
    setup: Setup,
}

impl ProjectController {
    /// A controller with these connections.
    pub fn new(setup: Setup) -> Self {
        Self {
            cache: ProjectCache::default(),
            losses: Mutex::new(setup.pools.losses()),
            waiting: cleanup::Waiting::default(),
            setup,
        }
    }
}

impl Reconciler for ProjectController {
    type Object = SupabaseProject;
    /// Boxed: a spec is large, and the kernel holds the target in the future of a pass.
    type Target = Box<target::Wanted>;
    type Observed = observe::Observed;
    type Plan = plan::Plan;
    type Applied = apply::Applied;
    type Cleanup = cleanup::ProjectCleanup;

    const NAME: &'static str = "supabase";
    const ANNOTATIONS: &'static [&'static str] = &[annotation::RECONCILE_AT, annotation::ROTATE_KEYS_AT];
    const CONDITIONS: &'static [&'static str] = report::CONDITIONS;
    const TRANSITION_EVENTS: &'static [TransitionEvent] = report::TRANSITION_EVENTS;

    fn watches() -> Vec<Watch> {
        vec![Watch::referred::<Secret>(), Watch::referred::<ConfigMap>()]
    }

    fn child_kinds() -> ChildKinds {
        children::child_kinds()
    }

    fn lane(project: &SupabaseProject) -> Option<String> {
        target::name(&project.spec.database.secret_ref)
    }

    fn rules() -> Vec<Rule> {
        vec![
            Rule::new("", &["secrets"], READ),
            // The Secret with the keys; the project owns it.
            Rule::new("", &["secrets"], &["create", "patch"]),
            Rule::new("", &["configmaps", "services"], OWN),
            Rule::new("apps", &["deployments"], OWN),
            Rule::new("autoscaling", &["horizontalpodautoscalers"], OWN),
            Rule::new("policy", &["poddisruptionbudgets"], OWN),
            Rule::new("networking.k8s.io", &["ingresses", "networkpolicies"], OWN),
            Rule::new(
                "gateway.networking.k8s.io",
                &["httproutes"],
                &["get", "create", "patch", "delete"],
            ),
            // The Pod Security level of the namespace, if a project requests more than restricted pods.
            Rule::new("", &["namespaces"], &["get"]),
            // Why a component is not ready.
            Rule::new("", &["pods"], &["list"]),
        ]
    }

    /// An invalid project is reported as such, although it is suspended.
    fn is_suspended(project: &SupabaseProject) -> bool {
        project.spec.suspend && validate::validate(project).is_ok()
    }

    fn validate(project: &SupabaseProject) -> Result<Self::Target, Problem> {
        validate::validate(project).map(Box::new)
    }

    /// Only a project that removes something has a finalizer. The finalizer is also handled for projects of a
    /// predecessor.
    fn needs_finalizer(target: &Self::Target) -> bool {
        target.spec.deletion_policy == DeletionPolicy::Delete
    }

    async fn observe(&self, read: &Reader, target: &Self::Target) -> Result<Self::Observed, Problem> {
        observe::observe(&self.setup, &self.cache, read, target).await
    }

    /// A lost connection of any pool is a sign for every project on that server.
    async fn external_events(&self) -> Vec<Key> {
        let server = self.losses.lock().await.next().await;
        self.cache.invalidate_server(&server)
    }

    fn plan(
        target: &Self::Target,
        observed: &Self::Observed,
        inputs: &mut Inputs<'_>,
    ) -> Result<Self::Plan, Problem> {
        Ok(plan::plan(target, observed, inputs))
    }

    fn pre_apply_status(
        project: &SupabaseProject,
        _: &Self::Target,
        _: &Self::Observed,
        plan: &Self::Plan,
    ) -> Option<SupabaseProjectStatus> {
        report::pre_apply_status(project, plan)
    }

    async fn apply(
        &self,
        write: &Writer,
        target: &Self::Target,
        observed: &Self::Observed,
        plan: Self::Plan,
        applied: &mut Self::Applied,
    ) -> Result<Done, Problem> {
        Box::pin(apply::apply(self, write, (target, observed), plan, applied)).await
    }

    fn report(
        project: &SupabaseProject,
        outcome: &Outcome<'_, Self>,
        now: Timestamp,
    ) -> Report<SupabaseProjectStatus> {
        report::report(project, outcome, now)
    }

    fn report_suspended(project: &SupabaseProject, now: Timestamp) -> Report<SupabaseProjectStatus> {
        report::suspended(project, now)
    }
}
