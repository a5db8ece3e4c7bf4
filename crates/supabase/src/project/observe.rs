//! Reads the Secrets, the database, the bucket and the children. Reads only.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Pod, Secret};
use stanchion_api::supabase::Phase;
use stanchion_kernel::context::Subject;
use stanchion_kernel::{Problem, Reader};
use stanchion_postgres as pg;

use super::before;
use super::children::{Children, Deed};
use super::contact::{Contact, Initialised, check};
use super::memory::{Memory, Resolved};
use super::patience::{self, Standstill};
use super::plan::{self, Deeds};
use super::pods;
use super::route::HTTPRoute;
use super::secrets::{self, Read};
use super::security;
use super::standing::Standing;
use super::target::{Departure, Target, Wanted};
use crate::Setup;
use crate::components;
use crate::database::{self, Login, Names};
use crate::keys::{self, Keys, names as key};

/// How long a deleted project waits for its database.
const HOLD: SignedDuration = SignedDuration::from_mins(5);
/// How long check results stay valid once a running component fails: the database may be the cause.
const IN_DOUBT: Duration = Duration::from_secs(5);

/// The observed state.
pub enum Observed {
    /// Of an active project.
    Project(Box<Present>),
    /// Of a converged project without changes except for its pods.
    Settled(Box<Look>),
    /// Of a deleted project: the connection to its database, if the project removes its objects there.
    Leaving(Option<Box<pg::Target>>),
    /// Nothing was read.
    Nothing,
}

/// The state of a project.
pub struct Present {
    /// The project as the owner of reads and writes.
    pub subject: Subject,
    /// The inputs of the children.
    pub standing: Arc<Standing>,
    /// The keys, if they were read because they may have to be written.
    pub keys: Option<Box<FoundKeys>>,
    /// The check of the database.
    pub postgres: Contact,
    /// The check of the bucket.
    pub s3: Contact,
    /// The state of the database.
    pub database: Database,
    /// The children.
    pub look: Look,
    /// The `HTTPRoute`, if one is or was requested.
    pub route: Option<HTTPRoute>,
    /// The changes of the children, if `observe` had to plan them.
    pub deeds: Option<Arc<Deeds>>,
}

/// The keys of a project.
pub struct FoundKeys {
    /// The desired keys.
    pub complete: Keys,
    /// The existing Secret.
    pub stored: Option<Secret>,
}

/// The state of a project's database.
pub enum Database {
    /// It is prepared.
    Complete(Initialised),
    /// It has to be prepared, or was not reached.
    Lacking(Box<Initialisation>),
}

/// The input for preparing a database.
#[derive(Clone)]
pub struct Initialisation {
    /// The administrator's connection.
    pub target: pg::Target,
    /// What the project needs there.
    pub request: database::Request,
}

/// The state of the children.
pub struct Look {
    /// The children.
    pub children: Children,
    /// Why components are not ready, if the pods were read.
    pub troubles: Vec<pods::Trouble>,
    /// When to check the dependencies.
    pub next: Duration,
    /// When to read the pods.
    pub patience: Duration,
}

/// Reads everything that the plan needs.
pub async fn observe(
    setup: &Setup,
    memory: &Memory,
    read: &Reader,
    target: &Target,
) -> Result<Observed, Problem> {
    let wanted = match target {
        Target::Project(wanted) => wanted,
        Target::Leaving(Some(departure)) => return way_back(read, departure).await.map(Observed::Leaving),
        Target::Leaving(None) | Target::Suspended => return Ok(Observed::Nothing),
    };
    let children = Children::known(read);
    let in_doubt = wanted.before.phase == Some(Phase::Running) && children.lack_pods();
    let within = if in_doubt { IN_DOUBT } else { memory.check_every() };
    if let Some(left) = before::settled(memory, read, wanted, &children, within) {
        let look = look(memory, read, wanted, children, left).await?;
        return Ok(Observed::Settled(Box::new(look)));
    }
    security::images(&wanted.spec, &setup.allowed_images)?;
    security::pods(read, wanted).await?;
    if let Some(present) = Box::pin(at_first(memory, read, wanted)).await? {
        return Ok(Observed::Project(Box::new(present)));
    }
    let present = match before::resolved(memory, read, wanted, within) {
        Some(resolved) => known(memory, read, wanted, children, resolved).await?,
        None => Box::pin(present(setup, memory, read, wanted, within)).await?,
    };
    Ok(Observed::Project(Box::new(present)))
}

/// The connection to the database of a deleted project. Without its Secrets there is none: they may be deleted first,
/// with their namespace, which nothing may block. A database that does not answer blocks only for a limited time.
async fn way_back(reader: &Reader, departure: &Departure) -> Result<Option<Box<pg::Target>>, Problem> {
    let held = departure
        .since
        .map(|since| Timestamp::now().duration_since(since))
        .is_some_and(|held| held > HOLD);
    if held {
        tracing::warn!("the cleanup of the database timed out; its objects are left in place");
        return Ok(None);
    }
    let wanted = &departure.wanted;
    let fetched = secrets::fetch(reader, wanted.administrator_secrets(), BTreeSet::new()).await?;
    match secrets::administrator(&fetched, wanted) {
        Ok((_, target)) => Ok(Some(Box::new(target))),
        Err(problem) => {
            tracing::warn!(problem = ?problem, "the Secret of the database is gone or incomplete; its objects are left in place");
            Ok(None)
        }
    }
}

/// What is needed to repair the children of a project that ran before this process began: a thousand projects are
/// repaired before the first database is checked. `None` for later reconciles, and for projects that need more
/// decisions.
async fn at_first(memory: &Memory, reader: &Reader, wanted: &Wanted) -> Result<Option<Present>, Problem> {
    let ran = matches!(wanted.before.phase, Some(Phase::Running | Phase::Updating));
    let Some(names) = wanted.before.logins.clone().filter(|_| ran) else {
        return Ok(None);
    };
    let Some(next) = memory.first_look(&reader.subject().key) else {
        return Ok(None);
    };
    let secrets = wanted.secret_names().into_iter().collect();
    let fetch = secrets::fetch(reader, secrets, wanted.config_maps());
    let (fetched, route) = tokio::try_join!(fetch, route(reader, wanted))?;
    let read = secrets::read(&fetched, wanted)?;
    let stored = fetched.secret(&wanted.key_secret()).cloned();
    let complete = complete_keys(wanted, &read, stored.as_ref(), Timestamp::now(), false)?;
    let standing = Arc::new(Standing::new(wanted, &read, &complete));
    let keys = FoundKeys { complete, stored };
    // New keys, or the end of old ones: the full reconcile decides.
    if keys.complete.is_rotating() || plan::key_secret(wanted, reader.subject(), &keys)?.is_some() {
        return Ok(None);
    }
    let database = Initialised {
        names,
        notes: Vec::new(),
        proof: database::Proof::default(),
    };
    let mut present = Present {
        subject: reader.subject().clone(),
        standing,
        keys: None,
        postgres: Contact::Unasked,
        s3: Contact::Unasked,
        database: Database::Complete(database.clone()),
        look: look(memory, reader, wanted, Children::known(reader), next).await?,
        route,
        deeds: None,
    };
    // A Secret may have changed the intent in the meantime: nothing is rolled out before it is known to work.
    let deeds = plan::deeds(wanted, &present, &database)?;
    if !deeds.steps.iter().all(Deed::is_repair) {
        return Ok(None);
    }
    present.deeds = Some(Arc::new(deeds));
    Ok(Some(present))
}

/// A project with unchanged Secrets, database and bucket.
async fn known(
    memory: &Memory,
    reader: &Reader,
    wanted: &Wanted,
    children: Children,
    resolved: Resolved,
) -> Result<Present, Problem> {
    Ok(Present {
        subject: reader.subject().clone(),
        standing: resolved.standing,
        keys: None,
        postgres: resolved.postgres,
        s3: resolved.s3,
        database: Database::Complete(resolved.database),
        look: look(memory, reader, wanted, children, resolved.left).await?,
        route: route(reader, wanted).await?,
        deeds: None,
    })
}

/// The children, and what blocks a long rollout.
async fn look(
    memory: &Memory,
    reader: &Reader,
    wanted: &Wanted,
    children: Children,
    next: Duration,
) -> Result<Look, Problem> {
    let (key, now) = (&reader.subject().key, Instant::now());
    let names = components::wanted(&wanted.spec).map(|(component, _)| component.child_name(&wanted.name));
    let names: Vec<String> = names.collect();
    let rollouts = names.iter().filter_map(|name| children.rollout(name));
    // Read the pods of a failed project each time; otherwise it would seem to have recovered.
    let has_failed = wanted.before.phase == Some(Phase::Failed);
    let (overdue, patience) = memory.standstill(key, |standstill| {
        *standstill = Standstill::after(standstill.take(), rollouts, now);
        let Some(standstill) = standstill else {
            return (false, patience::MOST);
        };
        let overdue = has_failed || standstill.left(now).is_zero();
        if overdue {
            standstill.asked(now);
        }
        (overdue, standstill.left(now))
    });
    let mut troubles = Vec::new();
    if overdue {
        let labels = format!(
            "app.kubernetes.io/instance={},app.kubernetes.io/managed-by={}",
            wanted.name,
            components::MANAGED_BY
        );
        let pods: Vec<Pod> = reader.list(&labels).await?;
        troubles = pods::troubles(&pods);
    }
    Ok(Look {
        children,
        troubles,
        next,
        patience,
    })
}

async fn present(
    setup: &Setup,
    memory: &Memory,
    reader: &Reader,
    wanted: &Wanted,
    within: Duration,
) -> Result<Present, Problem> {
    let now = Timestamp::now();
    let named = wanted.secret_names().into_iter().collect();
    let fetch = secrets::fetch(reader, named, wanted.config_maps());
    let (fetched, route) = tokio::try_join!(fetch, route(reader, wanted))?;
    let read = secrets::read(&fetched, wanted)?;
    let stored = fetched.secret(&wanted.key_secret()).cloned();
    let mut complete = complete_keys(wanted, &read, stored.as_ref(), now, false)?;
    let request = database_request(setup, wanted, &complete);
    let checked = check(setup, memory, reader, (&read, &request), within).await;
    let mut standing = Standing::new(wanted, &read, &complete);
    if let Some(database) = &checked.database
        && complete.is_rotating()
        && knows(reader, wanted, &standing, &database.names)
    {
        complete = complete_keys(wanted, &read, stored.as_ref(), now, true)?;
        standing = Standing::new(wanted, &read, &complete);
    }
    let look = look(
        memory,
        reader,
        wanted,
        Children::known(reader),
        memory.check_every(),
    )
    .await?;
    let lacking = || {
        let target = read.target.clone();
        Database::Lacking(Box::new(Initialisation { target, request }))
    };
    Ok(Present {
        subject: reader.subject().clone(),
        standing: Arc::new(standing),
        keys: Some(Box::new(FoundKeys { complete, stored })),
        postgres: checked.postgres,
        s3: checked.s3,
        database: checked.database.map_or_else(lacking, Database::Complete),
        look,
        route,
        deeds: None,
    })
}

/// The route, if one is or was requested.
async fn route(reader: &Reader, wanted: &Wanted) -> Result<Option<HTTPRoute>, Problem> {
    if wanted.spec.gateway.is_none() && !wanted.before.routed {
        return Ok(None);
    }
    match reader.get(&wanted.name).await {
        Err(problem) if problem.reason == "KindMissing" && wanted.spec.gateway.is_some() => {
            Err(Problem::dependency(
                "GatewayAPIMissing",
                "spec.gateway needs the Gateway API, which this cluster does not serve; install its CRDs",
            ))
        }
        Err(problem) if problem.reason == "KindMissing" => Ok(None),
        found => found,
    }
}

/// Whether every pod has these keys: the children are rendered from them, and have rolled out.
fn knows(reader: &Reader, wanted: &Wanted, standing: &Standing, names: &Names) -> bool {
    let children = Children::known(reader);
    let objects = plan::objects(&standing.project(wanted, names));
    children.have_rolled_out() && children.are(&objects, reader.subject())
}

fn complete_keys(
    wanted: &Wanted,
    read: &Read,
    secret: Option<&Secret>,
    now: Timestamp,
    published: bool,
) -> Result<Keys, Problem> {
    let data = secret.and_then(|secret| secret.data.clone()).unwrap_or_default();
    let keys = Keys::from_data(data.into_iter().map(|(key, value)| (key, value.0)));
    let request = keys::Request {
        own_secret: read.own_secret.clone(),
        rotate: wanted.rotate.as_deref(),
        grace: wanted.grace,
        published,
        logins: &components::logins(&wanted.spec),
        generated: &components::generated(&wanted.spec),
    };
    keys::complete(keys, &request, &mut rand::rng(), now)
        .map_err(|error| Problem::human("BrokenKey", error.to_string()))
}

fn database_request(setup: &Setup, wanted: &Wanted, keys: &Keys) -> database::Request {
    let password = |login: Login| Some((login, keys.get(key::password(login))?.clone()));
    database::Request {
        project: wanted.mark(),
        key: Arc::clone(&setup.fingerprints),
        passwords: components::logins(&wanted.spec)
            .into_iter()
            .filter_map(password)
            .collect(),
    }
}
