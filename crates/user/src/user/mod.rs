//! The controller of `PostgresUser`. Each step of a reconcile is one file, or one folder.

mod apply;
pub(crate) mod catalog;
mod cleanup;
mod failed;
mod guards;
mod last_password;
mod observe;
mod output;
mod passwords;
mod plan;
mod powers;
mod report;
mod rotation;
mod schemas;
mod sessions;
pub(crate) mod target;
mod validate;
mod withdrawn;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use stanchion_api::user::{PostgresUserStatus, annotation, condition};
use stanchion_api::{PostgresInstance, PostgresUser};
use stanchion_kernel::events::{Severity, TransitionEvent};
use stanchion_kernel::rbac::{READ, Rule};
use stanchion_kernel::watch::Watch;
use stanchion_kernel::{Done, Inactive, Inputs, Outcome, Problem, Reader, Reconciler, Report, Writer};

pub use validate::validate as check;
pub(crate) use validate::{instance, username_is_immutable};

use crate::server::Setup;

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
    type Target = target::Wanted;
    type Observed = observe::Observed;
    type Plan = plan::Plan;
    type Applied = apply::Applied;
    type Cleanup = cleanup::UserCleanup;

    const NAME: &'static str = "user";
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
            Rule::new("", &["namespaces"], READ).cluster_wide(),
            Rule::new("db.example.com", &["postgresinstances"], READ),
        ]
    }

    fn is_suspended(user: &PostgresUser) -> bool {
        validate::is_suspended(user)
    }

    fn validate(user: &PostgresUser) -> Result<Self::Target, Problem> {
        validate::validate(user)
    }

    async fn observe(&self, read: &Reader, wanted: &Self::Target) -> Result<Self::Observed, Problem> {
        Box::pin(observe::observe(&self.setup, read, wanted)).await
    }

    fn plan(
        wanted: &Self::Target,
        observed: &Self::Observed,
        inputs: &mut Inputs<'_>,
    ) -> Result<Self::Plan, Problem> {
        plan::plan(wanted, observed, inputs)
    }

    fn pre_apply_status(
        user: &PostgresUser,
        wanted: &Self::Target,
        _: &Self::Observed,
        plan: &Self::Plan,
    ) -> Option<PostgresUserStatus> {
        report::pre_apply_status(user, wanted, plan)
    }

    async fn apply(
        &self,
        write: &Writer,
        wanted: &Self::Target,
        _: &Self::Observed,
        plan: Self::Plan,
        applied: &mut Self::Applied,
    ) -> Result<Done, Problem> {
        Box::pin(apply::apply(&self.setup, write, wanted, plan, applied)).await
    }

    /// Neither `suspend` nor an invalid spec keeps a login open after its server was withdrawn, or a privilege that no
    /// object may have.
    async fn inactive(
        &self,
        read: &Reader,
        write: &Writer,
        user: &PostgresUser,
        _: Inactive<'_>,
    ) -> Result<(), Problem> {
        withdrawn::inactive(&self.setup, read, write, user).await?;
        Box::pin(schemas::revoke_closed(&self.setup, read, write, user)).await
    }

    fn report(
        user: &PostgresUser,
        outcome: &Outcome<'_, Self>,
        now: Timestamp,
    ) -> Report<PostgresUserStatus> {
        report::report(user, outcome, now)
    }

    fn report_suspended(user: &PostgresUser, now: Timestamp) -> Report<PostgresUserStatus> {
        report::suspended(user, now)
    }
}
