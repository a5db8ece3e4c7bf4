//! Removes the role of an object that is being deleted.

mod apply;
mod observe;
mod plan;

use jiff::Timestamp;
use kube::ResourceExt;
use stanchion_api::PostgresUser;
use stanchion_api::status::Status;
use stanchion_api::user::{
    DatabaseDeletion, DeletionPolicy, FINALIZER, InstanceRef, OnDelete, Phase, PostgresUserStatus, annotation,
};
use stanchion_kernel::condition::Conditions;
use stanchion_kernel::events::EventRecord;
use stanchion_kernel::{Cleanup, CleanupOutcome, Done, Inputs, Problem, Reader, Report, Writer};
use stanchion_postgres::handover::Disarmed;

use self::observe::CleanupState;
use self::plan::CleanupPlan;
use super::target::{Before, Identity};
use super::{UserController, report};

/// The deletion of a `PostgresUser`.
pub struct UserCleanup;

/// A role to remove, as recorded in the status.
pub struct CleanupTarget {
    /// Its owner.
    pub identity: Identity,
    /// The server.
    pub instance: Option<InstanceRef>,
    /// The role; `None` if no reconcile ever reached the database.
    pub username: Option<String>,
    /// What happens to the role.
    pub policy: DeletionPolicy,
    /// What happens to the objects that it owns.
    pub on_delete: OnDelete,
    /// Whether to drop the databases that the operator created.
    pub drop_databases: bool,
    /// Whether to release the object without any change.
    pub released: bool,
    /// The record of earlier reconciles.
    pub before: Before,
}

/// What was done to what the role owned.
#[derive(Debug, Default)]
pub struct Removed {
    /// Some of the objects that were disarmed before they were reassigned.
    pub disarmed: Vec<String>,
}

/// How many disarmed objects are named.
const SHOWN: usize = 20;

impl Removed {
    /// Records what was disarmed in a database.
    fn disarm(&mut self, database: &str, armed: &Disarmed) {
        let room = SHOWN.saturating_sub(self.disarmed.len());
        let some = armed.some.iter().take(room);
        let named = some.len();
        self.disarmed
            .extend(some.map(|what| format!("{what} in database {database}")));
        let more = armed.count - i64::try_from(named).unwrap_or(i64::MAX);
        if more > 0 {
            self.disarmed.push(format!("{more} more in database {database}"));
        }
    }
}

impl Cleanup for UserCleanup {
    type Controller = UserController;
    type Target = CleanupTarget;
    type Observed = Option<CleanupState>;
    type Plan = Option<CleanupPlan>;
    type Applied = Removed;

    const FINALIZER: Option<&'static str> = Some(FINALIZER);

    fn target(user: &PostgresUser) -> CleanupTarget {
        target(user)
    }

    async fn observe(
        controller: &UserController,
        read: &Reader,
        cleanup: &CleanupTarget,
    ) -> Result<Option<CleanupState>, Problem> {
        observe::observe(&controller.setup, read, cleanup).await
    }

    fn plan(
        cleanup: &CleanupTarget,
        state: &Option<CleanupState>,
        _: &mut Inputs<'_>,
    ) -> Result<Option<CleanupPlan>, Problem> {
        match state {
            Some(state) => plan::plan(cleanup, state),
            None => Ok(None),
        }
    }

    fn pre_apply_status(
        user: &PostgresUser,
        _: &CleanupTarget,
        _: &Option<CleanupState>,
        plan: &Option<CleanupPlan>,
    ) -> Option<PostgresUserStatus> {
        plan.as_ref().map(|_| PostgresUserStatus {
            phase: Some(Phase::Deleting),
            ..user.status.clone().unwrap_or_default()
        })
    }

    async fn apply(
        controller: &UserController,
        write: &Writer,
        cleanup: &CleanupTarget,
        _: &Option<CleanupState>,
        plan: Option<CleanupPlan>,
        removed: &mut Removed,
    ) -> Result<Done, Problem> {
        if let Some(plan) = plan {
            write.may_write()?;
            Box::pin(apply::apply(&controller.setup, cleanup, &plan, removed)).await?;
        }
        Ok(Done::Complete)
    }

    fn report(
        user: &PostgresUser,
        outcome: &CleanupOutcome<'_, Self>,
        now: Timestamp,
    ) -> Report<PostgresUserStatus> {
        let mut status = user.status.clone().unwrap_or_default();
        let mut conditions = Conditions::new(status.conditions(), user.metadata.generation, now);
        let state = outcome.observed.and_then(Option::as_ref);
        let server = state.map(|state| state.server.target.to_string());
        report::connected(&mut conditions, outcome.problem, server);
        if let Some(problem) = outcome.problem {
            report::fail(user, &mut status, &mut conditions, problem);
        }
        status.conditions = conditions.finish();
        let disarmed = &outcome.applied.disarmed;
        if !disarmed.is_empty() {
            status.disarmed.clone_from(disarmed);
        }
        Report {
            events: match outcome.problem {
                None => disarmed_event(disarmed).into_iter().collect(),
                Some(_) => Vec::new(),
            },
            requeue_after: report::requeue_after(user, None),
            ..Report::new(status)
        }
    }
}

/// What to remove: what the status records, independent of the current spec, which may be invalid.
pub(super) fn target(user: &PostgresUser) -> CleanupTarget {
    let spec = &user.spec;
    let before = Before::of(user);
    // Every reconcile writes a status, which names the role before it is created. An object without a status was
    // interrupted in its first reconcile, or has lost its status: the server's state decides.
    let status = user.status.as_ref();
    let reported = status.is_some_and(|status| status.observed_generation.is_some());
    let released = user
        .annotations()
        .get(annotation::FORCE_RELEASE)
        .is_some_and(|value| value == "true");
    let create = spec.create_database.clone().unwrap_or_default();
    CleanupTarget {
        identity: Identity::of(user),
        instance: match &before.username {
            Some(_) => before.instance.clone(),
            None => spec.instance_ref.clone(),
        },
        username: before
            .username
            .clone()
            .or_else(|| (!reported).then(|| spec.username.clone())),
        policy: spec.deletion_policy,
        on_delete: spec.on_delete.clone().unwrap_or_default(),
        drop_databases: create.deletion_policy == DatabaseDeletion::Delete,
        released,
        before,
    }
}

/// An event lists what was disarmed, because it outlives the object.
fn disarmed_event(disarmed: &[String]) -> Option<EventRecord> {
    (!disarmed.is_empty()).then(|| {
        EventRecord::warning(
            "ObjectsDisarmed",
            "Remove",
            format!(
                "the role owned objects that run with their owner's privileges; they were disarmed and reassigned: {}",
                disarmed.join(", ")
            ),
        )
    })
}
