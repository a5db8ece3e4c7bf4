//! Executes a plan.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use stanchion_api::policy::{PlanPhase, PostgresPolicyPlanStatus};
use stanchion_kernel::problem::Cause;
use stanchion_kernel::text::shorten;
use stanchion_kernel::{Class, Problem, ambient};
use stanchion_roles::apply::{Options, apply as engine, aside};
use stanchion_roles::diff::{self, diff};
use stanchion_roles::inspect::{InspectionDigest, inspect_with_digest};
use stanchion_roles::plan::Plan as Changes;

use super::advance::Pass;
use super::{Applied, PlanEvent};
use crate::policy::report::LONGEST_ERROR;
use crate::problems;

impl Pass<'_> {
    pub(super) async fn write_secrets(&self) -> Result<(), Problem> {
        for secret in &self.passwords.secrets {
            self.write.apply::<Secret>(secret).await?;
        }
        Ok(())
    }

    /// Executes the plan, and records the result in its status.
    pub(super) async fn execute(
        &self,
        name: &str,
        mut status: PostgresPolicyPlanStatus,
        changes: &Changes,
        options: diff::Options,
        applied: &mut Applied,
    ) -> Result<InspectionDigest, Problem> {
        let metrics = &self.controller.setup.metrics;
        let done = self.run(changes, options).await;
        let now = ambient::now();
        match done {
            Ok(digest) => {
                let statements =
                    usize::try_from(status.sql_statements.unwrap_or_default()).unwrap_or_default();
                metrics.applied(Some(statements));
                status.phase = PlanPhase::Applied;
                status.applied_at = Some(now);
                status.applying_since = None;
                self.set(name, &status).await?;
                let count = changes.changes.len();
                applied.plan_events.push(PlanEvent::Succeeded(name.into(), count));
                Ok(digest)
            }
            Err(problem) => {
                metrics.applied(None);
                status.phase = match (problem.cause, problem.class) {
                    // Nothing was tried, or the database now needs other changes: the next reconcile decides.
                    (Cause::DatabaseBusy, _) => PlanPhase::Approved,
                    (Cause::Superseded, _) => PlanPhase::Superseded,
                    // The transaction may have committed: the next reconcile sees that, and ends the plan or continues
                    // it.
                    (_, Class::Transient) => return Err(problem),
                    _ => PlanPhase::Failed,
                };
                if status.phase == PlanPhase::Failed {
                    status.failed_at = Some(now);
                    status.last_error = Some(shorten(&problem.message, LONGEST_ERROR));
                    let failed = PlanEvent::Failed(name.into(), problem.message.clone());
                    applied.plan_events.push(failed);
                }
                status.applying_since = None;
                self.set(name, &status).await?;
                Err(problem)
            }
        }
    }

    /// One transaction under the database's lock, which applies exactly the plan or nothing. A second inspection
    /// confirms the result, because only an observed state is reported.
    async fn run(&self, changes: &Changes, options: diff::Options) -> Result<InspectionDigest, Problem> {
        self.write_secrets().await?;
        self.write.may_write()?;
        let setup = &self.controller.setup;
        let exclusive = setup.pools.exclusive(&self.current.database, setup.turn).await;
        let (_turn, mut session) =
            exclusive.map_err(|error| problems::of_postgres(error, problems::During::Apply))?;
        let desired = &self.current.content.desired;
        let how = Options {
            diff: options.clone(),
            lock_wait: setup.turn,
            expected: Some(changes.digest()),
            ..Options::default()
        };
        engine(&mut session, desired, &how)
            .await
            .map_err(problems::of_apply)?;
        let (facts, digest) = inspect_with_digest(&mut session, &self.current.needs)
            .await
            .map_err(problems::of_inspection)?;
        let passwords = if facts.server.reads_passwords {
            options.passwords
        } else {
            BTreeMap::new()
        };
        let options = diff::Options { passwords, ..options };
        let left = aside(|| diff(desired, &facts, &options))
            .map_err(|error| Problem::permanent("InvalidDatabaseTarget", error.to_string()))?;
        if left.is_empty() {
            return Ok(digest);
        }
        Err(Problem::transient(
            "NotConverged",
            format!(
                "the plan was applied, but {} change(s) are still needed: somebody else changes the same objects",
                left.changes.len()
            ),
        ))
    }
}
