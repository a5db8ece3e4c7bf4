//! The controller of `SupabaseProject`. Each step of a reconcile is one file.

pub mod apply;
pub mod before;
pub mod children;
pub mod contact;
pub mod memory;
pub mod observe;
pub mod patience;
pub mod plan;
pub mod pods;
pub mod report;
pub mod route;
pub mod secrets;
pub mod security;
pub mod standing;
pub mod target;
pub mod validate;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use stanchion_api::SupabaseProject;
use stanchion_api::supabase::{DeletionPolicy, FINALIZER, SupabaseProjectStatus, annotation};
use stanchion_kernel::events::Announcement;
use stanchion_kernel::family::Kinds;
use stanchion_kernel::rbac::{OWN, READ, Rule};
use stanchion_kernel::watch::Watch;
use stanchion_kernel::watch::references::Key;
use stanchion_kernel::{Outcome, Problem, Reader, Reconciler, Report, Writer};
use stanchion_postgres::Listener;
use tokio::sync::Mutex;

pub use validate::validate as check;

use crate::Setup;
use memory::Memory;

/// Reconciles `SupabaseProject` objects.
pub struct ProjectController {
    memory: Memory,
    /// The servers that somebody has lost, whichever controller it was.
    losses: Mutex<Listener>,
    setup: Setup,
}

impl ProjectController {
    /// A controller with these connections.
    pub fn new(setup: Setup) -> Self {
        Self {
            memory: Memory::default(),
            losses: Mutex::new(setup.pools.losses()),
            setup,
        }
    }
}

impl Reconciler for ProjectController {
    type Object = SupabaseProject;
    type Target = target::Target;
    type Observed = observe::Observed;
    type Plan = plan::Plan;
    type Applied = apply::Applied;

    const NAME: &'static str = "supabase";
    const FINALIZER: Option<&'static str> = Some(FINALIZER);
    const ANNOTATIONS: &'static [&'static str] = &[annotation::RECONCILE_AT, annotation::ROTATE_KEYS_AT];
    const CONDITIONS: &'static [&'static str] = report::CONDITIONS;
    const ANNOUNCEMENTS: &'static [Announcement] = report::ANNOUNCEMENTS;

    fn watches() -> Vec<Watch> {
        vec![Watch::referred::<Secret>(), Watch::referred::<ConfigMap>()]
    }

    fn families() -> Kinds {
        children::families()
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

    fn validate(project: &SupabaseProject) -> Result<Self::Target, Problem> {
        validate::validate(project)
    }

    /// Children are garbage-collected, and nothing outside is removed unless the spec requests that.
    fn farewell(project: &SupabaseProject) -> Self::Target {
        validate::farewell(project)
    }

    /// Only a project that removes something has a finalizer. The finalizer is also handled for projects of a
    /// predecessor.
    fn holds(target: &Self::Target) -> bool {
        matches!(target, target::Target::Project(wanted)
            if wanted.spec.deletion_policy == DeletionPolicy::Delete)
    }

    async fn observe(&self, read: &Reader, target: &Self::Target) -> Result<Self::Observed, Problem> {
        observe::observe(&self.setup, &self.memory, read, target).await
    }

    /// A lost connection of any pool is a sign for every project on that server.
    async fn signs(&self) -> Vec<Key> {
        let server = self.losses.lock().await.next().await;
        self.memory.doubt(&server)
    }

    fn plan(target: &Self::Target, observed: &Self::Observed) -> Result<Self::Plan, Problem> {
        plan::plan(target, observed)
    }

    fn announce(
        project: &SupabaseProject,
        _: &Self::Target,
        _: &Self::Observed,
        plan: &Self::Plan,
    ) -> Option<SupabaseProjectStatus> {
        report::announce(project, plan)
    }

    async fn apply(
        &self,
        write: &Writer,
        target: &Self::Target,
        observed: &Self::Observed,
        plan: Self::Plan,
        applied: &mut Self::Applied,
    ) -> Result<(), Problem> {
        let work = apply::apply(&self.setup, &self.memory, write, target, observed, plan, applied);
        Box::pin(work).await
    }

    fn report(
        project: &SupabaseProject,
        outcome: &Outcome<'_, Self>,
        now: Timestamp,
    ) -> Report<SupabaseProjectStatus> {
        report::report(project, outcome, now)
    }
}
