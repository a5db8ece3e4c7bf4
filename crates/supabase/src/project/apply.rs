//! Applies the plan. Every step is idempotent; the process can be killed between any two.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use stanchion_kernel::{Problem, Writer};
use stanchion_postgres as pg;

use super::cache::{Converged, ProjectCache};
use super::children::Children;
use super::dependency_check::Initialised;
use super::observe::{Current, Database, Initialisation, Observed};
use super::plan::{self, ChildChanges, Plan, Then};
use super::route::HTTPRoute;
use super::target::{Target, Wanted};
use crate::{Setup, database};

/// The progress, and what was done.
#[derive(Default)]
pub struct Applied {
    /// The last step that was begun.
    pub stage: Stage,
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
    setup: &Setup,
    cache: &ProjectCache,
    write: &Writer,
    target: &Target,
    observed: &Observed,
    plan: Plan,
    applied: &mut Applied,
) -> Result<(), Problem> {
    if matches!(observed, Observed::Unchanged(_)) {
        applied.stage = Stage::Done;
    }
    if let (Plan::Cleanup(database), Target::Cleanup(Some(cleanup))) = (&plan, target) {
        return remove(setup, write, database, &cleanup.wanted).await;
    }
    let (Plan::Ensure(work), Target::Ensure(wanted), Observed::Ensure(current)) = (plan, target, observed)
    else {
        return Ok(());
    };
    applied.stage = Stage::Secrets;
    if let Some(intent) = &work.keys {
        write.apply::<Secret>(intent).await?;
        applied.keys_written = true;
    }
    if let Database::Complete(database) = &current.database {
        applied.database = Some(database.clone());
    }
    let changes = match work.then {
        Then::Children(changes) => changes,
        Then::Database(how) => {
            Arc::new(initialise(setup, cache, write, wanted, (current, &how), applied).await?)
        }
    };
    applied.stage = Stage::Components;
    cache.set_converged(&current.parent.key, None);
    components(write, &changes, applied).await?;
    applied.stage = Stage::Done;
    let left = Children::left_by(write);
    let fingerprint = left.fingerprint();
    // Somebody can change a child while others are written. The check is not needed if nothing was written and nothing
    // has changed since.
    let untouched = changes.steps.is_empty() && current.view.children.fingerprint() == fingerprint;
    let are_done = || untouched || left.are(&changes.objects, &current.parent);
    // Routes are not watched, so a project with one is reconciled completely each time.
    let fingerprint = fingerprint
        .filter(|_| current.render_inputs.keys.published_at.is_none())
        .filter(|_| wanted.spec.gateway.is_none() && are_done());
    let converged = fingerprint.map(|children| Converged {
        generation: wanted.generation,
        rotate: wanted.rotate.clone(),
        secrets: wanted.secret_names(),
        config_maps: wanted.config_maps(),
        children,
    });
    cache.set_converged(&current.parent.key, converged);
    // ConfigMaps may be large; a project that uses some reads them again.
    if current.keys.is_some() && wanted.config_maps().is_empty() {
        cache.remember_inputs(&current.parent.key, wanted.reading(), &current.render_inputs);
    }
    Ok(())
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

async fn initialise(
    setup: &Setup,
    cache: &ProjectCache,
    write: &Writer,
    wanted: &Wanted,
    (current, how): (&Current, &Initialisation),
    applied: &mut Applied,
) -> Result<ChildChanges, Problem> {
    applied.stage = Stage::Database;
    write.may_write()?;
    let outcome = database::initialise(&setup.pools, &how.target, &how.request).await?;
    applied.initialised.clone_from(&outcome.ran);
    let database = Initialised::from(outcome);
    cache.initialised(&current.parent.key, database.clone());
    let changes = plan::changes(wanted, current, &database)?;
    applied.database = Some(database);
    Ok(changes)
}

/// Writes the children.
async fn components(write: &Writer, changes: &ChildChanges, applied: &mut Applied) -> Result<(), Problem> {
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
