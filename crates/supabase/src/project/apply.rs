//! Applies the plan. Every step is idempotent; the process can be killed between any two.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use stanchion_kernel::{Problem, Writer};
use stanchion_postgres as pg;

use super::children::Children;
use super::contact::Initialised;
use super::memory::{Memory, Settled};
use super::observe::{Database, Initialisation, Observed, Present};
use super::plan::{self, Deeds, Plan, Then};
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
    memory: &Memory,
    write: &Writer,
    target: &Target,
    observed: &Observed,
    plan: Plan,
    applied: &mut Applied,
) -> Result<(), Problem> {
    if matches!(observed, Observed::Settled(_)) {
        applied.stage = Stage::Done;
    }
    if let (Plan::Remove(database), Target::Leaving(Some(departure))) = (&plan, target) {
        return remove(setup, write, database, &departure.wanted).await;
    }
    let (Plan::Make(work), Target::Project(wanted), Observed::Project(present)) = (plan, target, observed)
    else {
        return Ok(());
    };
    applied.stage = Stage::Secrets;
    if let Some(intent) = &work.keys {
        write.apply::<Secret>(intent).await?;
        applied.keys_written = true;
    }
    if let Database::Complete(database) = &present.database {
        applied.database = Some(database.clone());
    }
    let deeds = match work.then {
        Then::Children(deeds) => deeds,
        Then::Database(how) => {
            Arc::new(initialise(setup, memory, write, wanted, (present, &how), applied).await?)
        }
    };
    applied.stage = Stage::Components;
    memory.settle(&present.subject.key, None);
    components(write, &deeds, applied).await?;
    applied.stage = Stage::Done;
    let left = Children::left_by(write);
    let fingerprint = left.fingerprint();
    // Somebody can change a child while others are written. The check is not needed if nothing was written and nothing
    // has changed since.
    let untouched = deeds.steps.is_empty() && present.look.children.fingerprint() == fingerprint;
    let are_done = || untouched || left.are(&deeds.objects, &present.subject);
    // Routes are not watched, so a project with one is reconciled completely each time.
    let fingerprint = fingerprint
        .filter(|_| present.standing.keys.published_at.is_none())
        .filter(|_| wanted.spec.gateway.is_none() && are_done());
    let settled = fingerprint.map(|children| Settled {
        generation: wanted.generation,
        rotate: wanted.rotate.clone(),
        secrets: wanted.secret_names(),
        config_maps: wanted.config_maps(),
        children,
    });
    memory.settle(&present.subject.key, settled);
    // ConfigMaps may be large; a project that uses some reads them again.
    if present.keys.is_some() && wanted.config_maps().is_empty() {
        memory.stand(&present.subject.key, wanted.reading(), &present.standing);
    }
    Ok(())
}

/// Removes what was created in the database. What had to stay is reported as a problem, once, because a deletion
/// without a problem sends no event; the next reconcile finds nothing to do.
async fn remove(
    setup: &Setup,
    write: &Writer,
    database: &pg::Target,
    wanted: &Wanted,
) -> Result<(), Problem> {
    write.may_write()?;
    let is_gone = |problem: &Problem| {
        let cause = std::error::Error::source(problem).and_then(|cause| cause.downcast_ref::<pg::Error>());
        cause.is_some_and(|error| error.sqlstate() == Some("3D000"))
    };
    let left = match database::remove(&setup.pools, database, &wanted.mark()).await {
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
    memory: &Memory,
    write: &Writer,
    wanted: &Wanted,
    (present, how): (&Present, &Initialisation),
    applied: &mut Applied,
) -> Result<Deeds, Problem> {
    applied.stage = Stage::Database;
    write.may_write()?;
    let outcome = database::initialise(&setup.pools, &how.target, &how.request).await?;
    applied.initialised.clone_from(&outcome.ran);
    let database = Initialised::from(outcome);
    memory.initialised(&present.subject.key, database.clone());
    let deeds = plan::deeds(wanted, present, &database)?;
    applied.database = Some(database);
    Ok(deeds)
}

/// Writes the children.
async fn components(write: &Writer, deeds: &Deeds, applied: &mut Applied) -> Result<(), Problem> {
    for deed in &deeds.steps {
        let deployment = deed.deployment().map(str::to_owned);
        if deed.clone().carry_out(write).await? {
            applied.rolled.extend(deployment);
        }
    }
    if let Some(intent) = &deeds.route {
        write.apply::<HTTPRoute>(intent).await?;
    }
    if let Some(stale) = &deeds.stale_route {
        write.delete::<HTTPRoute>(stale).await?;
    }
    Ok(())
}
