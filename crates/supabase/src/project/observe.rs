//! Reads the Secrets, the database, the bucket and the children. Reads only.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Pod, Secret};
use stanchion_api::supabase::Phase;
use stanchion_kernel::context::Parent;
use stanchion_kernel::problem::Cause;
use stanchion_kernel::{Problem, Reader, ambient};
use stanchion_postgres as pg;
use tokio::time::Instant;

use super::cache::{ProjectCache, Resolved};
use super::cached;
use super::children::{Children, ObjectChange};
use super::dependency_check::{CheckResult, Initialised, check};
use super::plan::{self, ChildChanges};
use super::pods;
use super::render_inputs::RenderInputs;
use super::rollout_backoff::{self, StalledRollout};
use super::route::HTTPRoute;
use super::secrets::{self, Read};
use super::security;
use super::target::{CleanupTarget, Target, Wanted};
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
    Ensure(Box<Current>),
    /// Of a converged project without changes except for its pods.
    Unchanged(Box<ChildrenView>),
    /// Of a deleted project: the connection to its database, if the project removes its objects there.
    Cleanup(Option<Box<pg::ConnectionConfig>>),
    /// Nothing was read.
    Nothing,
}

/// The state of a project.
pub struct Current {
    /// The project as the owner of reads and writes.
    pub parent: Parent,
    /// The inputs of the children.
    pub render_inputs: Arc<RenderInputs>,
    /// The keys, if they were read because they may have to be written.
    pub keys: Option<Box<FoundKeys>>,
    /// The check of the database.
    pub postgres: CheckResult,
    /// The check of the bucket.
    pub s3: CheckResult,
    /// The state of the database.
    pub database: Database,
    /// The children.
    pub view: ChildrenView,
    /// The `HTTPRoute`, if one is or was requested.
    pub route: Option<HTTPRoute>,
    /// The changes of the children, if `observe` had to plan them.
    pub changes: Option<Arc<ChildChanges>>,
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
    pub target: pg::ConnectionConfig,
    /// What the project needs there.
    pub request: database::Request,
}

/// The state of the children.
pub struct ChildrenView {
    /// The children.
    pub children: Children,
    /// Why components are not ready, if the pods were read.
    pub pod_problems: Vec<pods::PodProblem>,
    /// When to check the dependencies.
    pub next: Duration,
    /// When to read the pods.
    pub retry_delay: Duration,
}

/// Reads everything that the plan needs.
pub async fn observe(
    setup: &Setup,
    cache: &ProjectCache,
    read: &Reader,
    target: &Target,
) -> Result<Observed, Problem> {
    let wanted = match target {
        Target::Ensure(wanted) => wanted,
        Target::Cleanup(Some(cleanup)) => {
            return cleanup_connection(read, cleanup).await.map(Observed::Cleanup);
        }
        Target::Cleanup(None) | Target::Suspended => return Ok(Observed::Nothing),
    };
    let children = Children::known(read);
    let in_doubt = wanted.before.phase == Some(Phase::Running) && children.lack_pods();
    let within = if in_doubt { IN_DOUBT } else { cache.check_every() };
    if let Some(left) = cached::converged(cache, read, wanted, &children, within) {
        let view = view(cache, read, wanted, children, left).await?;
        return Ok(Observed::Unchanged(Box::new(view)));
    }
    security::images(&wanted.spec, &setup.allowed_images)?;
    security::pods(read, wanted).await?;
    if let Some(current) = Box::pin(at_first(cache, read, wanted)).await? {
        return Ok(Observed::Ensure(Box::new(current)));
    }
    let current = match cached::resolved(cache, read, wanted, within) {
        Some(resolved) => known(cache, read, wanted, children, resolved).await?,
        None => Box::pin(ensure(setup, cache, read, wanted, within)).await?,
    };
    Ok(Observed::Ensure(Box::new(current)))
}

/// The connection to the database of a deleted project. Without its Secrets there is none: they may be deleted first,
/// with their namespace, which nothing may block. A database that does not answer blocks only for a limited time.
async fn cleanup_connection(
    reader: &Reader,
    cleanup: &CleanupTarget,
) -> Result<Option<Box<pg::ConnectionConfig>>, Problem> {
    let held = cleanup
        .since
        .map(|since| ambient::now().duration_since(since))
        .is_some_and(|held| held > HOLD);
    if held {
        tracing::warn!("the cleanup of the database timed out; its objects are left in place");
        return Ok(None);
    }
    let wanted = &cleanup.wanted;
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
async fn at_first(
    cache: &ProjectCache,
    reader: &Reader,
    wanted: &Wanted,
) -> Result<Option<Current>, Problem> {
    let ran = matches!(wanted.before.phase, Some(Phase::Running | Phase::Updating));
    let Some(names) = wanted.before.logins.clone().filter(|_| ran) else {
        return Ok(None);
    };
    let Some(next) = cache.first_look(&reader.parent().key) else {
        return Ok(None);
    };
    let secrets = wanted.secret_names().into_iter().collect();
    let fetch = secrets::fetch(reader, secrets, wanted.config_maps());
    let (fetched, route) = tokio::try_join!(fetch, route(reader, wanted))?;
    let read = secrets::read(&fetched, wanted)?;
    let stored = fetched.secret(&wanted.key_secret()).cloned();
    let complete = complete_keys(wanted, &read, stored.as_ref(), ambient::now(), false)?;
    let render_inputs = Arc::new(RenderInputs::new(wanted, &read, &complete));
    let keys = FoundKeys { complete, stored };
    // New keys, or the end of old ones: the full reconcile decides.
    if keys.complete.is_rotating() || plan::key_secret(wanted, reader.parent(), &keys)?.is_some() {
        return Ok(None);
    }
    let database = Initialised {
        names,
        notes: Vec::new(),
        verified: database::VerifiedPasswords::default(),
    };
    let mut current = Current {
        parent: reader.parent().clone(),
        render_inputs,
        keys: None,
        postgres: CheckResult::NotChecked,
        s3: CheckResult::NotChecked,
        database: Database::Complete(database.clone()),
        view: view(cache, reader, wanted, Children::known(reader), next).await?,
        route,
        changes: None,
    };
    // A Secret may have changed the intent in the meantime: nothing is rolled out before it is known to work.
    let changes = plan::changes(wanted, &current, &database)?;
    if !changes.steps.iter().all(ObjectChange::is_repair) {
        return Ok(None);
    }
    current.changes = Some(Arc::new(changes));
    Ok(Some(current))
}

/// A project with unchanged Secrets, database and bucket.
async fn known(
    cache: &ProjectCache,
    reader: &Reader,
    wanted: &Wanted,
    children: Children,
    resolved: Resolved,
) -> Result<Current, Problem> {
    Ok(Current {
        parent: reader.parent().clone(),
        render_inputs: resolved.render_inputs,
        keys: None,
        postgres: resolved.postgres,
        s3: resolved.s3,
        database: Database::Complete(resolved.database),
        view: view(cache, reader, wanted, children, resolved.left).await?,
        route: route(reader, wanted).await?,
        changes: None,
    })
}

/// The children, and what blocks a long rollout.
async fn view(
    cache: &ProjectCache,
    reader: &Reader,
    wanted: &Wanted,
    children: Children,
    next: Duration,
) -> Result<ChildrenView, Problem> {
    let (key, now) = (&reader.parent().key, Instant::now());
    let names = components::wanted(&wanted.spec).map(|(component, _)| component.child_name(&wanted.name));
    let names: Vec<String> = names.collect();
    let rollouts = names.iter().filter_map(|name| children.rollout(name));
    // Read the pods of a failed project each time; otherwise it would seem to have recovered.
    let has_failed = wanted.before.phase == Some(Phase::Failed);
    let (overdue, retry_delay) = cache.stalled(key, |stalled| {
        *stalled = StalledRollout::after(stalled.take(), rollouts, now);
        let Some(stalled) = stalled else {
            return (false, rollout_backoff::MOST);
        };
        let overdue = has_failed || stalled.left(now).is_zero();
        if overdue {
            stalled.asked(now);
        }
        (overdue, stalled.left(now))
    });
    let mut pod_problems = Vec::new();
    if overdue {
        let labels = format!(
            "app.kubernetes.io/instance={},app.kubernetes.io/managed-by={}",
            wanted.name,
            components::MANAGED_BY
        );
        let pods: Vec<Pod> = reader.list(&labels).await?;
        pod_problems = pods::pod_problems(&pods);
    }
    Ok(ChildrenView {
        children,
        pod_problems,
        next,
        retry_delay,
    })
}

async fn ensure(
    setup: &Setup,
    cache: &ProjectCache,
    reader: &Reader,
    wanted: &Wanted,
    within: Duration,
) -> Result<Current, Problem> {
    let now = ambient::now();
    let named = wanted.secret_names().into_iter().collect();
    let fetch = secrets::fetch(reader, named, wanted.config_maps());
    let (fetched, route) = tokio::try_join!(fetch, route(reader, wanted))?;
    let read = secrets::read(&fetched, wanted)?;
    let stored = fetched.secret(&wanted.key_secret()).cloned();
    let mut complete = complete_keys(wanted, &read, stored.as_ref(), now, false)?;
    let request = database_request(setup, wanted, &complete);
    let checked = check(setup, cache, reader, (&read, &request), within).await;
    let mut render_inputs = RenderInputs::new(wanted, &read, &complete);
    if let Some(database) = &checked.database
        && complete.is_rotating()
        && knows(reader, wanted, &render_inputs, &database.names)
    {
        complete = complete_keys(wanted, &read, stored.as_ref(), now, true)?;
        render_inputs = RenderInputs::new(wanted, &read, &complete);
    }
    let view = view(
        cache,
        reader,
        wanted,
        Children::known(reader),
        cache.check_every(),
    )
    .await?;
    let lacking = || {
        let target = read.target.clone();
        Database::Lacking(Box::new(Initialisation { target, request }))
    };
    Ok(Current {
        parent: reader.parent().clone(),
        render_inputs: Arc::new(render_inputs),
        keys: Some(Box::new(FoundKeys { complete, stored })),
        postgres: checked.postgres,
        s3: checked.s3,
        database: checked.database.map_or_else(lacking, Database::Complete),
        view,
        route,
        changes: None,
    })
}

/// The route, if one is or was requested.
async fn route(reader: &Reader, wanted: &Wanted) -> Result<Option<HTTPRoute>, Problem> {
    if wanted.spec.gateway.is_none() && !wanted.before.routed {
        return Ok(None);
    }
    match reader.get(&wanted.name).await {
        Err(problem) if problem.is(Cause::KindMissing) && wanted.spec.gateway.is_some() => {
            Err(Problem::dependency(
                "GatewayAPIMissing",
                "spec.gateway needs the Gateway API, which this cluster does not serve; install its CRDs",
            ))
        }
        Err(problem) if problem.is(Cause::KindMissing) => Ok(None),
        found => found,
    }
}

/// Whether every pod has these keys: the children are rendered from them, and have rolled out.
fn knows(reader: &Reader, wanted: &Wanted, render_inputs: &RenderInputs, names: &Names) -> bool {
    let children = Children::known(reader);
    let objects = plan::objects(&render_inputs.project(wanted, names));
    children.have_rolled_out() && children.are(&objects, reader.parent())
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
        project: wanted.project_id(),
        key: Arc::clone(&setup.fingerprints),
        passwords: components::logins(&wanted.spec)
            .into_iter()
            .filter_map(password)
            .collect(),
    }
}
