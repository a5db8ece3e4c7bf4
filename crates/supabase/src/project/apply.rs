//! Makes it so. Every step may be repeated; the process can be killed between any two.

use k8s_openapi::api::core::v1::Secret;
use stanchion_kernel::{Problem, Writer};

use super::children::Children;
use super::memory::{Memory, Settled};
use super::observe::{Initialised, Observed, Present};
use super::plan::{self, Deeds, Plan};
use super::route::HTTPRoute;
use super::target::{Target, Wanted};
use crate::{Setup, database};

/// How far it came, and what was done.
#[derive(Default)]
pub struct Applied {
    /// The step that was begun last.
    pub stage: Stage,
    /// Keys were made or changed.
    pub keys_written: bool,
    /// The steps that were run in the database.
    pub initialised: Vec<&'static str>,
    /// The database is in order; what does not work there is in its notes.
    pub database: Option<Initialised>,
    /// The Deployments that were written.
    pub rolled: Vec<String>,
}

/// The steps, in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Secrets are read, the database and the bucket are asked.
    #[default]
    Dependencies,
    /// The Secret with the keys is written.
    Secrets,
    /// The database is brought in order.
    Database,
    /// The children are written.
    Components,
    /// Everything was done.
    Done,
}

/// Does what the plan says.
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
    let (Plan::Make(work), Target::Project(wanted), Observed::Project(present)) = (plan, target, observed)
    else {
        return Ok(());
    };
    applied.stage = Stage::Secrets;
    if let Some(intent) = &work.keys {
        write.apply::<Secret>(intent).await?;
        applied.keys_written = true;
    }
    let deeds = match work.deeds {
        Some(deeds) => {
            applied.database.clone_from(&present.database);
            deeds
        }
        None => initialise(setup, memory, write, wanted, present, applied).await?,
    };
    applied.stage = Stage::Components;
    memory.settle(&present.subject.key, None);
    components(write, deeds, applied).await?;
    applied.stage = Stage::Done;
    // A route is watched by nobody, so a project with one is looked at as a whole each time.
    let fingerprint = Children::left_by(write)
        .fingerprint()
        .filter(|_| wanted.spec.gateway.is_none());
    let settled = fingerprint.map(|children| Settled {
        generation: wanted.generation,
        rotate: wanted.rotate.clone(),
        secrets: wanted.secret_names(),
        config_maps: wanted.config_maps(),
        children,
    });
    memory.settle(&present.subject.key, settled);
    Ok(())
}

async fn initialise(
    setup: &Setup,
    memory: &Memory,
    write: &Writer,
    wanted: &Wanted,
    present: &Present,
    applied: &mut Applied,
) -> Result<Deeds, Problem> {
    applied.stage = Stage::Database;
    write.may_write()?;
    let outcome = database::initialise(&setup.pools, &present.read.target, &present.request).await?;
    applied.initialised = outcome.ran;
    let database = Initialised {
        names: outcome.names,
        notes: outcome.notes,
    };
    memory.initialised(&present.subject.key, database.clone());
    let deeds = plan::deeds(wanted, present, &database)?;
    applied.database = Some(database);
    Ok(deeds)
}

async fn components(write: &Writer, deeds: Deeds, applied: &mut Applied) -> Result<(), Problem> {
    for deed in deeds.steps {
        let deployment = deed.deployment().map(str::to_owned);
        if deed.carry_out(write).await? {
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
