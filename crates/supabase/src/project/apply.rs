//! Applies the plan. Every step is idempotent; the process can be killed between any two.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use stanchion_api::SupabaseProject;
use stanchion_kernel::{Problem, Writer};
use stanchion_postgres as pg;

use super::ProjectController;
use super::cache::{Checked, Converged};
use super::children::{Children, HTTPRoute};
use super::dependency_check::Initialised;
use super::observe::{Basis, Current, Observed};
use super::plan::{self, ChildChanges, DatabasePlan, EnsurePlan, Initialisation, Plan};
use super::render_inputs::RenderInputs;
use super::target::{Target, Wanted};
use crate::{Setup, database};

/// The progress, and what was done.
#[derive(Default)]
pub struct Applied {
    /// The last step that was begun.
    pub stage: Stage,
    /// What the children were made from.
    pub render_inputs: Option<Arc<RenderInputs>>,
    /// Whether keys were generated or changed.
    pub keys_written: bool,
    /// The steps that ran in the database.
    pub initialised: Vec<&'static str>,
    /// The prepared database; its notes list what does not work.
    pub database: Option<Initialised>,
    /// The Deployments that were written.
    pub rolled: Vec<String>,
}

/// The steps, in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Reads the Secrets, checks the database and the bucket.
    #[default]
    Dependencies,
    /// Writes the Secret with the keys.
    Secrets,
    /// Prepares the database.
    Database,
    /// Writes the children.
    Components,
    /// Everything is done.
    Done,
}

/// Applies the plan.
pub async fn apply(
    controller: &ProjectController,
    write: &Writer,
    target: &Target,
    observed: &Observed,
    plan: Plan,
    applied: &mut Applied,
) -> Result<(), Problem> {
    if let (Plan::Cleanup(database), Target::Cleanup(Some(cleanup))) = (&plan, target) {
        return remove(&controller.setup, write, database, &cleanup.wanted).await;
    }
    let (Target::Ensure(wanted), Observed::Ensure(current)) = (target, observed) else {
        return Ok(());
    };
    let pass = Pass {
        controller,
        write,
        wanted,
        current,
    };
    pass.remember();
    match plan {
        Plan::Nothing | Plan::Cleanup(_) => {
            applied.stage = Stage::Done;
            Ok(())
        }
        Plan::Wait(problem) => {
            pass.remember_check(current.new_check().cloned());
            Err(problem)
        }
        Plan::CheckDependencies => {
            write.wake::<SupabaseProject>(&current.parent.key);
            Ok(())
        }
        Plan::Ensure(plan) => pass.ensure(*plan, applied).await,
    }
}

/// One pass over an active project.
struct Pass<'a> {
    controller: &'a ProjectController,
    write: &'a Writer,
    wanted: &'a Wanted,
    current: &'a Current,
}

impl Pass<'_> {
    /// Remembers what was read, whatever follows.
    fn remember(&self) {
        let (cache, current) = (&self.controller.cache, self.current);
        cache.set_stalled(&current.parent.key, current.view.stalled.clone());
        if let Basis::FirstLook { delay, .. } = current.basis {
            cache.postpone(&current.parent.key, delay);
        }
    }

    /// Remembers a check. If a server is lost that answered before, other projects on it are reconciled.
    fn remember_check(&self, checked: Option<Checked>) {
        let Some(checked) = checked else { return };
        for other in self.controller.cache.check(&self.current.parent.key, checked) {
            self.write.wake::<SupabaseProject>(&other);
        }
    }

    async fn ensure(&self, plan: EnsurePlan, applied: &mut Applied) -> Result<(), Problem> {
        let (cache, current) = (&self.controller.cache, self.current);
        self.remember_check(plan.checked);
        applied.stage = Stage::Secrets;
        if let Some(intent) = &plan.keys {
            self.write.apply::<Secret>(intent).await?;
            applied.keys_written = true;
        }
        let (database, changes) = match plan.database {
            DatabasePlan::Prepared(database, changes) => (database, changes),
            DatabasePlan::Prepare(how) => {
                let database = self.prepare(&how, applied).await?;
                let changes = plan::changes(self.wanted, current, &plan.render_inputs, &database.names)?;
                (database, changes)
            }
        };
        applied.database = Some(database);
        applied.stage = Stage::Components;
        cache.set_converged(&current.parent.key, None);
        children(self.write, &changes, applied).await?;
        applied.stage = Stage::Done;
        cache.set_converged(&current.parent.key, self.converged(&plan.render_inputs, &changes));
        // ConfigMaps may be large; a project that uses some reads them again.
        if matches!(current.basis, Basis::Checked { .. }) && self.wanted.config_maps().is_empty() {
            cache.remember_inputs(&current.parent.key, self.wanted.reading(), &plan.render_inputs);
        }
        applied.render_inputs = Some(plan.render_inputs);
        Ok(())
    }

    async fn prepare(&self, how: &Initialisation, applied: &mut Applied) -> Result<Initialised, Problem> {
        applied.stage = Stage::Database;
        self.write.may_write()?;
        let pools = &self.controller.setup.pools;
        let outcome = database::initialise(pools, &how.target, &how.request).await?;
        applied.initialised.clone_from(&outcome.ran);
        let database = Initialised::from(outcome);
        let cache = &self.controller.cache;
        cache.initialised(&self.current.parent.key, database.clone());
        Ok(database)
    }

    /// The inputs of a converged project, if it is one now.
    fn converged(&self, render_inputs: &RenderInputs, changes: &ChildChanges) -> Option<Converged> {
        let (wanted, current) = (self.wanted, self.current);
        let left = Children::left_by(self.write);
        let fingerprint = left.fingerprint();
        // Somebody can change a child while others are written. The check is not needed if nothing was written and
        // nothing has changed since.
        let untouched = changes.steps.is_empty() && current.view.children.fingerprint() == fingerprint;
        let are_done = || untouched || left.are(&changes.objects, &current.parent);
        // Routes are not watched, so a project with one is reconciled completely each time.
        let fingerprint = fingerprint
            .filter(|_| render_inputs.keys.published_at.is_none())
            .filter(|_| wanted.spec.gateway.is_none() && are_done());
        fingerprint.map(|children| Converged {
            generation: wanted.generation,
            rotate: wanted.rotate.clone(),
            secrets: wanted.secret_names(),
            config_maps: wanted.config_maps(),
            children,
        })
    }
}

/// Removes what was created in the database. What had to stay is reported as a problem, once, because a deletion
/// without a problem sends no event; the next reconcile finds nothing to do.
async fn remove(
    setup: &Setup,
    write: &Writer,
    database: &pg::ConnectionConfig,
    wanted: &Wanted,
) -> Result<(), Problem> {
    write.may_write()?;
    let is_gone = |problem: &Problem| {
        let cause = std::error::Error::source(problem).and_then(|cause| cause.downcast_ref::<pg::Error>());
        cause.is_some_and(|error| error.sqlstate() == Some("3D000"))
    };
    let left = match database::remove(&setup.pools, database, &wanted.project_id()).await {
        Err(problem) if is_gone(&problem) => return Ok(()),
        left => left?,
    };
    if left.is_empty() {
        return Ok(());
    }
    let message = format!("left in the database, because others use it: {}", left.join("; "));
    Err(Problem::transient("ObjectsLeft", message))
}

/// Writes the children.
async fn children(write: &Writer, changes: &ChildChanges, applied: &mut Applied) -> Result<(), Problem> {
    for change in &changes.steps {
        let deployment = change.deployment().map(str::to_owned);
        if change.clone().apply_change(write).await? {
            applied.rolled.extend(deployment);
        }
    }
    if let Some(intent) = &changes.route {
        write.apply::<HTTPRoute>(intent).await?;
    }
    if let Some(stale) = &changes.stale_route {
        write.delete::<HTTPRoute>(stale).await?;
    }
    Ok(())
}
