//! The controller of `PostgresUser`. Each step of a reconcile is one file, or one folder.

mod acl;
pub mod apply;
pub mod catalog;
pub mod contents;
pub mod database_oid;
pub mod observe;
pub mod output;
pub mod passwords;
pub mod plan;
pub mod privilege_keywords;
pub mod report;
pub mod rotation;
pub mod snapshot;
pub mod target;
pub mod validate;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use stanchion_api::user::{FINALIZER, PostgresUserStatus, annotation, condition};
use stanchion_api::{PostgresInstance, PostgresUser};
use stanchion_kernel::events::{Severity, TransitionEvent};
use stanchion_kernel::rbac::{READ, Rule};
use stanchion_kernel::watch::Watch;
use stanchion_kernel::{Outcome, Problem, Reader, Reconciler, Report, Writer};

pub use validate::{instance, username as check_username, username_is_immutable, validate as check};

use crate::setup::Setup;

/// Reconciles `PostgresUser` objects.
pub struct UserController {
    setup: Setup,
}

impl UserController {
    /// A controller with these connections.
    pub fn new(setup: Setup) -> Self {
        Self { setup }
    }
}

const fn transition(condition: &'static str, status: &'static str, kind: Severity) -> TransitionEvent {
    TransitionEvent {
        condition,
        status,
        kind,
        action: "Reconcile",
    }
}

impl Reconciler for UserController {
    type Object = PostgresUser;
    type Target = target::Target;
    type Observed = observe::Observed;
    type Plan = plan::Plan;
    type Applied = apply::Applied;

    const NAME: &'static str = "user";
    const FINALIZER: Option<&'static str> = Some(FINALIZER);
    const ANNOTATIONS: &'static [&'static str] = &[
        annotation::RECONCILE_AT,
        annotation::ROTATE_AT,
        annotation::FORCE_RELEASE,
    ];
    const CONDITIONS: &'static [&'static str] = &[
        condition::READY,
        condition::DATABASE_CONNECTED,
        condition::PASSWORD_SYNCED,
        condition::PRIVILEGES_SYNCED,
        condition::DRIFTED,
    ];
    const TRANSITION_EVENTS: &'static [TransitionEvent] = &[
        transition(condition::READY, "True", Severity::Normal),
        transition(condition::READY, "False", Severity::Warning),
        transition(condition::DATABASE_CONNECTED, "False", Severity::Warning),
        transition(condition::DRIFTED, "True", Severity::Warning),
    ];

    fn watches() -> Vec<Watch> {
        vec![
            Watch::referred::<Secret>(),
            Watch::referred::<PostgresInstance>(),
            Watch::cluster_wide::<Namespace>(),
        ]
    }

    fn lane(user: &PostgresUser) -> Option<String> {
        let instance = user.spec.instance_ref.as_ref();
        Some(instance.map_or_else(String::new, |instance| {
            format!(
                "{}/{}",
                instance.namespace.as_deref().unwrap_or_default(),
                instance.name
            )
        }))
    }

    fn rules() -> Vec<Rule> {
        vec![
            Rule::new("", &["secrets"], READ),
            // The credentials Secret: written by server-side apply, deleted when its name changes.
            Rule::new("", &["secrets"], &["create", "patch", "delete"]),
            // That Secret blocks the deletion of its owner, which some clusters check.
            Rule::new("db.example.com", &["postgresusers/finalizers"], &["update"]),
            Rule::new("", &["namespaces"], READ).cluster_wide(),
            Rule::new("db.example.com", &["postgresinstances"], READ),
        ]
    }

    fn validate(user: &PostgresUser) -> Result<Self::Target, Problem> {
        validate::validate_or_inactive(user)
    }

    fn cleanup_target(user: &PostgresUser) -> Self::Target {
        validate::cleanup_target(user)
    }

    async fn observe(&self, read: &Reader, target: &Self::Target) -> Result<Self::Observed, Problem> {
        observe::observe(&self.setup, read, target).await
    }

    fn plan(target: &Self::Target, observed: &Self::Observed) -> Result<Self::Plan, Problem> {
        plan::plan(target, observed)
    }

    fn pre_apply_status(
        user: &PostgresUser,
        target: &Self::Target,
        observed: &Self::Observed,
        plan: &Self::Plan,
    ) -> Option<PostgresUserStatus> {
        report::pre_apply_status(user, target, observed, plan)
    }

    async fn apply(
        &self,
        write: &Writer,
        target: &Self::Target,
        observed: &Self::Observed,
        plan: Self::Plan,
        applied: &mut Self::Applied,
    ) -> Result<(), Problem> {
        Box::pin(apply::apply(&self.setup, write, target, observed, plan, applied)).await
    }

    fn report(
        user: &PostgresUser,
        outcome: &Outcome<'_, Self>,
        now: Timestamp,
    ) -> Report<PostgresUserStatus> {
        report::report(user, outcome, now)
    }
}
