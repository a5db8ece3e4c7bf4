//! Applies the plan. Every step is idempotent; the process can be killed between any two.

use std::sync::Arc;

use stanchion_api::SupabaseProject;
use stanchion_kernel::apply::Written;
use stanchion_kernel::{Done, Problem, Writer};

use super::ProjectController;
use super::cache::{Checked, Converged};
use super::children::Children;
use super::dependency_check::Initialised;
use super::observe::{Basis, Observed};
use super::plan::{self, ChildChanges, DatabasePlan, EnsurePlan, Initialisation, Plan};
use super::render_inputs::RenderInputs;
use super::target::Wanted;
use crate::database;

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
    /// The first reconcile by this process has repaired children.
    pub repaired: bool,
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
pub(crate) async fn apply(
    controller: &ProjectController,
    write: &Writer,
    (wanted, observed): (&Wanted, &Observed),
    plan: Plan,
    applied: &mut Applied,
) -> Result<Done, Problem> {
    let pass = Pass {
        controller,
        write,
        wanted,
        observed,
    };
    pass.remember();
    match plan {
        Plan::Nothing => applied.stage = Stage::Done,
        Plan::Wait(problem) => {
            pass.remember_check(observed.new_check().cloned());
            return Ok(Done::Blocked(problem));
        }
        Plan::Repair(changes, problem) => {
            pass.remember_check(observed.new_check().cloned());
            applied.stage = Stage::Components;
            let mut written = Written::default();
            write.apply_all(changes, &mut written).await?;
            applied.rolled = written.names("Deployment").map(str::to_owned).collect();
            applied.stage = Stage::Dependencies;
            return Ok(Done::Blocked(problem));
        }
        Plan::CheckDependencies => write.wake::<SupabaseProject>(&observed.parent.key),
        Plan::Ensure(plan) => pass.ensure(*plan, applied).await?,
    }
    Ok(Done::Complete)
}

/// One pass over an active project.
struct Pass<'a> {
    controller: &'a ProjectController,
    write: &'a Writer,
    wanted: &'a Wanted,
    observed: &'a Observed,
}

impl Pass<'_> {
    /// Remembers what was read, whatever follows.
    fn remember(&self) {
        let (cache, observed) = (&self.controller.cache, self.observed);
        cache.set_stalled(&observed.parent.key, observed.view.stalled.clone());
        if let Basis::FirstLook { delay, .. } = observed.basis {
            cache.postpone(&observed.parent.key, delay);
        }
    }

    /// Remembers a check. If a server is lost that answered before, other projects on it are reconciled.
    fn remember_check(&self, checked: Option<Checked>) {
        let Some(checked) = checked else { return };
        for other in self.controller.cache.check(&self.observed.parent.key, checked) {
            self.write.wake::<SupabaseProject>(&other);
        }
    }

    async fn ensure(&self, plan: EnsurePlan, applied: &mut Applied) -> Result<(), Problem> {
        let (cache, observed) = (&self.controller.cache, self.observed);
        self.remember_check(plan.checked);
        applied.stage = Stage::Secrets;
        let mut written = Written::default();
        self.write.apply_all(plan.keys, &mut written).await?;
        applied.keys_written = !written.is_empty();
        let (database, changes) = match plan.database {
            DatabasePlan::Prepared(database, changes) => (database, *changes),
            DatabasePlan::Prepare(how) => {
                let database = self.prepare(*how, applied).await?;
                let changes = plan::changes(self.wanted, observed, &plan.render_inputs, &database.names)?;
                (database, changes)
            }
        };
        applied.database = Some(database);
        applied.stage = Stage::Components;
        cache.set_converged(&observed.parent.key, None);
        let mut written = Written::default();
        let all: Vec<_> = changes.children.iter().chain(&changes.route).cloned().collect();
        self.write.apply_all(all, &mut written).await?;
        applied.rolled = written.names("Deployment").map(str::to_owned).collect();
        applied.repaired = matches!(observed.basis, Basis::FirstLook { .. }) && !written.is_empty();
        if applied.repaired {
            cache.set_repaired(&observed.parent.key);
        }
        applied.stage = Stage::Done;
        cache.set_converged(
            &observed.parent.key,
            self.converged(&plan.render_inputs, &changes)
                .filter(|_| observed.may_be_ready()),
        );
        // ConfigMaps may be large; a project that uses some reads them again.
        if matches!(observed.basis, Basis::Checked { .. }) && self.wanted.config_maps().is_empty() {
            cache.remember_inputs(&observed.parent.key, self.wanted.reading(), &plan.render_inputs);
        }
        applied.render_inputs = Some(plan.render_inputs);
        Ok(())
    }

    async fn prepare(&self, how: Initialisation, applied: &mut Applied) -> Result<Initialised, Problem> {
        applied.stage = Stage::Database;
        self.write.may_write()?;
        let pools = &self.controller.setup.pools;
        let outcome = database::initialise(pools, &how.target, &how.request, how.random).await?;
        applied.initialised.clone_from(&outcome.ran);
        let database = Initialised::from(outcome);
        let cache = &self.controller.cache;
        cache.initialised(&self.observed.parent.key, database.clone());
        Ok(database)
    }

    /// The inputs of a converged project, if it is one now.
    fn converged(&self, render_inputs: &RenderInputs, changes: &ChildChanges) -> Option<Converged> {
        let (wanted, observed) = (self.wanted, self.observed);
        let left = Children::left_by(self.write);
        let fingerprint = left.fingerprint();
        // Somebody can change a child while others are written. The check is not needed if nothing was written and
        // nothing has changed since.
        let untouched = changes.children.is_empty() && observed.view.children.fingerprint() == fingerprint;
        let are_done = || untouched || left.are(&changes.intents);
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
