//! The deletion of a policy: revokes what only this policy declares, if its deletion policy says so and a plan of the policy was
//! applied.

use std::sync::Arc;

use jiff::Timestamp;
use stanchion_api::PostgresPolicy;
use stanchion_api::policy::{DeletionPolicy, FINALIZER, PostgresPolicyStatus};
use stanchion_kernel::watch::dependencies::Key;
use stanchion_kernel::{Cleanup, CleanupOutcome, Done, Inputs, Problem, Reader, Report, Writer};
use stanchion_postgres::ConnectionConfig;
use stanchion_roles::apply::{Options, apply as engine};
use stanchion_roles::expand::{Other, after_deletion};

use crate::claims::DatabaseKey;
use crate::passwords::Secrets;
use crate::plans::{applied_in, was_applied};
use crate::policy::observe::plans;
use crate::policy::target::{CleanupTarget, Content, Wanted};
use crate::policy::validate::{validate, who};
use crate::policy::{PolicyController, report};
use crate::{connection, problems, profiles};

/// What a deleted policy granted, and where.
pub struct Granted {
    pub database: ConnectionConfig,
    pub place: DatabaseKey,
    /// The server's address.
    pub peer: String,
    /// The desired state before the deletion.
    pub content: Content,
}

/// What to do before the policy goes.
pub enum CleanupPlan {
    /// The database stays as it is.
    Retain,
    /// Revoke what only this policy granted.
    Revoke(Arc<Granted>),
}

/// The path of a policy that is being deleted.
pub struct PolicyCleanup;

impl Cleanup for PolicyCleanup {
    type Controller = PolicyController;
    type Target = CleanupTarget;
    type Observed = Option<Arc<Granted>>;
    type Plan = CleanupPlan;
    type Applied = ();

    const FINALIZER: Option<&'static str> = Some(FINALIZER);

    /// An invalid policy leaves the database unchanged.
    fn target(policy: &PostgresPolicy) -> CleanupTarget {
        CleanupTarget {
            who: who(policy),
            policy: policy.spec.deletion_policy,
            wanted: validate(policy).ok(),
        }
    }

    async fn observe(
        controller: &PolicyController,
        read: &Reader,
        target: &CleanupTarget,
    ) -> Result<Option<Arc<Granted>>, Problem> {
        let _running = controller.setup.metrics.running();
        match (target.policy, &target.wanted) {
            (DeletionPolicy::Revoke, Some(wanted)) if wanted.mode.applies() => {
                let granted = granted(controller, read, wanted).await.map_err(|problem| {
                    problem.while_doing(
                        "deletionPolicy is Revoke (set it to Retain to delete the policy without that)",
                    )
                })?;
                Ok(granted.map(Arc::new))
            }
            // A policy that only observes changes nothing when it is deleted, either.
            (DeletionPolicy::Retain, _) | (DeletionPolicy::Revoke, None | Some(_)) => Ok(None),
        }
    }

    fn plan(
        _: &CleanupTarget,
        granted: &Option<Arc<Granted>>,
        _: &mut Inputs<'_>,
    ) -> Result<CleanupPlan, Problem> {
        Ok(match granted {
            Some(granted) => CleanupPlan::Revoke(Arc::clone(granted)),
            None => CleanupPlan::Retain,
        })
    }

    async fn apply(
        controller: &PolicyController,
        write: &Writer,
        target: &CleanupTarget,
        _: &Option<Arc<Granted>>,
        plan: CleanupPlan,
        (): &mut (),
    ) -> Result<Done, Problem> {
        let _running = controller.setup.metrics.running();
        let policy = &target.who.key;
        match plan {
            CleanupPlan::Retain => {}
            CleanupPlan::Revoke(granted) => Box::pin(revoke(controller, write, policy, &granted)).await?,
        }
        release(controller, write, policy);
        Ok(Done::Complete)
    }

    fn report(
        policy: &PostgresPolicy,
        outcome: &CleanupOutcome<'_, Self>,
        now: Timestamp,
    ) -> Report<PostgresPolicyStatus> {
        report::report_cleanup(policy, outcome.problem, now)
    }
}

/// What the policy granted, and where; `None` if none of its plans was applied in its database. What it declares may exist there
/// all the same: others granted it.
async fn granted(
    controller: &PolicyController,
    read: &Reader,
    wanted: &Wanted,
) -> Result<Option<Granted>, Problem> {
    // After a restart, the deletion may be first, and must not revoke what others declare.
    controller.survey(read).await?;
    // The status remembers what the history of plans has forgotten, and the plans what the status did not record yet.
    let applied = wanted.before.applied_database_identity.as_deref();
    let plans = plans(read, &wanted.who).await?;
    if applied.is_none() && !plans.iter().any(was_applied) {
        return Ok(None);
    }
    let mut secrets = Secrets::new(read);
    let database = connection::resolve(&wanted.connection, &mut secrets).await?;
    let content = profiles::complete(read, wanted).await?;
    let found = controller.setup.pools.place(&database).await;
    let found = found.map_err(|error| problems::of_postgres(error, problems::During::Connect))?;
    let identity = found.identity.to_string();
    let was_applied = applied == Some(&identity) || applied_in(&plans, &identity);
    Ok(was_applied.then(|| Granted {
        database,
        place: DatabaseKey::from(&found.identity),
        peer: found.peer,
        content,
    }))
}

/// Forgets a policy that enforces nothing any more, and enqueues those that waited for it.
pub(crate) fn release(controller: &PolicyController, write: &Writer, policy: &Key) {
    controller.converged.forget(policy);
    for other in controller.setup.claims.release(policy) {
        write.wake::<PostgresPolicy>(&other);
    }
}

/// Revokes what no other policy declares. Another policy claims before it waits for its turn at the database, so all that
/// could be applied before this turn ends are known.
async fn revoke(
    controller: &PolicyController,
    write: &Writer,
    policy: &Key,
    granted: &Granted,
) -> Result<(), Problem> {
    write.may_write()?;
    let setup = &controller.setup;
    let exclusive = setup.pools.exclusive(&granted.database, setup.turn).await;
    let (_turn, mut session) =
        exclusive.map_err(|error| problems::of_postgres(error, problems::During::Apply))?;
    let others = setup.claims.others(policy, &granted.place, &granted.peer);
    if others.iter().any(|other| other.partial) && controller.may_wait_for_others() {
        return Err(Problem::transient(
            problems::PENDING,
            "another policy uses shared profiles, which the operator has not read since it started",
        ));
    }
    let others: Vec<_> = others
        .iter()
        .map(|other| Other {
            desired: &other.desired,
            same_database: other.same_database,
        })
        .collect();
    let desired = after_deletion(&granted.content.desired, &others);
    let options = Options {
        lock_wait: setup.turn,
        ..Options::default()
    };
    engine(&mut session, &desired, &options)
        .await
        .map_err(problems::of_apply)?;
    Ok(())
}
