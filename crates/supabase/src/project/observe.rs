//! Reads the Secrets, the database, the bucket and the children. Reads only.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::Resource;
use stanchion_api::supabase::Phase;
use stanchion_kernel::context::Parent;
use stanchion_kernel::problem::Cause;
use stanchion_kernel::{Problem, Reader, ambient};
use tokio::time::Instant;

use super::cache::{Checked, ProjectCache, Resolved};
use super::children::{Children, HTTPRoute};
use super::dependency_check::{Check, CheckResult, check};
use super::key_secret;
use super::pods::{self, StalledRollout};
use super::secrets::{self, Read};
use super::security;
use super::target::Wanted;
use crate::Setup;
use crate::components;
use crate::database::{self, Names};

/// How long check results stay valid once a running component fails: the database may be the cause.
const IN_DOUBT: Duration = Duration::from_secs(5);

/// The observed state of a project.
pub struct Observed {
    /// The project as the owner of reads and writes.
    pub parent: Parent,
    /// What the children are made from.
    pub basis: Basis,
    pub view: ChildrenView,
    /// The `HTTPRoute`, if one is or was requested.
    pub route: Option<HTTPRoute>,
}

/// What the children are made from.
pub enum Basis {
    /// The project is converged, and nothing has changed except for its pods.
    Unchanged,
    /// For the first reconcile by this process of a project that was deployed before: a thousand projects are repaired
    /// before the first database is checked.
    FirstLook {
        /// The values of the Secrets.
        read: Box<Read>,
        /// The names of the logins, as the status has them.
        names: Names,
        /// How long the check of the dependencies is delayed.
        delay: Duration,
        /// Whether the project was running.
        ran: bool,
    },
    /// Nothing has changed since the last check.
    Known(Box<Resolved>),
    /// Everything was read.
    Checked {
        /// The values of the Secrets.
        read: Box<Read>,
        /// The check of the database and the bucket.
        check: Box<Check>,
        /// What the project needs in its database, with the passwords that exist.
        request: database::Request,
    },
}

impl Observed {
    /// The checks of the database and of the bucket, if they were checked in this reconcile or shortly before.
    pub fn checks(&self) -> Option<(&CheckResult, &CheckResult)> {
        match &self.basis {
            Basis::Unchanged | Basis::FirstLook { .. } => None,
            Basis::Known(resolved) => Some((&resolved.postgres, &resolved.s3)),
            Basis::Checked { check, .. } => Some((&check.checked.postgres, &check.checked.s3)),
        }
    }

    /// Whether the children alone decide if the project is ready. Before the first check by this process, one that was not
    /// running may have lost its database or its bucket.
    pub(crate) fn may_be_ready(&self) -> bool {
        !matches!(self.basis, Basis::FirstLook { ran: false, .. })
    }

    /// The results of a check that was made in this reconcile.
    pub(crate) fn new_check(&self) -> Option<&Checked> {
        match &self.basis {
            Basis::Checked { check, .. } if check.is_new => Some(&check.checked),
            _ => None,
        }
    }
}

/// The state of the children.
pub struct ChildrenView {
    pub children: Children,
    /// Why components are not ready, if the pods were read.
    pub pod_problems: Vec<pods::PodProblem>,
    /// Rollouts that do not progress.
    pub stalled: Option<StalledRollout>,
    /// Children were repaired after the start: what rolls out may be the repair.
    pub repaired: bool,
    /// When to check the dependencies.
    pub next: Duration,
    /// When to read the pods.
    pub retry_delay: Duration,
}

/// Reads everything that the plan needs.
pub(crate) async fn observe(
    setup: &Setup,
    cache: &ProjectCache,
    read: &Reader,
    wanted: &Wanted,
) -> Result<Observed, Problem> {
    let children = Children::known(read);
    let in_doubt = wanted.before.phase == Some(Phase::Running) && children.lack_pods();
    let within = if in_doubt { IN_DOUBT } else { cache.check_every() };
    if let Some(left) = converged(cache, read, wanted, &children, within) {
        return Ok(Observed {
            parent: read.parent().clone(),
            basis: Basis::Unchanged,
            view: view(cache, read, wanted, children, left).await?,
            route: None,
        });
    }
    security::images(&wanted.spec, &setup.allowed_images)?;
    security::pods(read, wanted).await?;
    if let Some((names, delay)) = is_first_look(cache, read, wanted) {
        Box::pin(first_look(cache, read, wanted, names, delay)).await
    } else if let Some(resolved) = resolved(cache, read, wanted, within) {
        known(cache, read, wanted, children, resolved).await
    } else {
        cache.outdated(&read.parent().key);
        Box::pin(everything(setup, cache, read, wanted, within)).await
    }
}

/// How long the last dependency check stays valid, if the project is converged and none of its inputs changed.
fn converged(
    cache: &ProjectCache,
    reader: &Reader,
    wanted: &Wanted,
    children: &Children,
    within: Duration,
) -> Option<Duration> {
    let (before, left) = cache.converged(&reader.parent().key, within)?;
    let same = before.generation == wanted.generation
        && before.rotate == wanted.rotate
        && children.fingerprint() == Some(before.children);
    let changed =
        changed::<Secret>(reader, &before.secrets) + changed::<ConfigMap>(reader, &before.config_maps);
    (same && changed == 0 && !is_over(wanted.before.previous_until)).then_some(left)
}

/// The cached results, if none of their inputs can have changed: an unchanged spec causes no read.
fn resolved(cache: &ProjectCache, reader: &Reader, wanted: &Wanted, within: Duration) -> Option<Resolved> {
    let resolved = cache.resolved(&reader.parent().key, &wanted.reading(), within)?;
    let changed = changed::<Secret>(reader, &wanted.secret_names());
    // While new keys are published, the progress of the rollouts decides what comes next.
    let keys = &resolved.render_inputs.keys;
    let waits = keys.published_at.is_some() || is_over(keys.previous_until);
    (changed == 0 && !waits).then_some(resolved)
}

/// How many of these have changed since they were read. Each is checked, because only a checked object stays registered
/// as a dependency.
fn changed<'a, K>(reader: &Reader, names: impl IntoIterator<Item = &'a String>) -> usize
where
    K: Resource<DynamicType = ()>,
{
    let names = names.into_iter();
    names.filter(|name| !reader.is_unchanged::<K>(name)).count()
}

/// Whether the grace period of the old keys has ended.
fn is_over(previous_until: Option<Timestamp>) -> bool {
    previous_until.is_some_and(|until| until <= ambient::now())
}

/// For the first reconcile by this process of a project that was deployed before, whatever its phase: the names of its
/// logins, and how long the check of its dependencies is delayed.
fn is_first_look(cache: &ProjectCache, reader: &Reader, wanted: &Wanted) -> Option<(Names, Duration)> {
    let names = wanted.before.deployed_as()?;
    Some((names.clone(), cache.first_look(&reader.parent().key)?))
}

/// What is needed to repair the children.
async fn first_look(
    cache: &ProjectCache,
    reader: &Reader,
    wanted: &Wanted,
    names: Names,
    delay: Duration,
) -> Result<Observed, Problem> {
    let (read, route) = named(reader, wanted).await?;
    Ok(Observed {
        parent: reader.parent().clone(),
        basis: Basis::FirstLook {
            read: Box::new(read),
            names,
            delay,
            ran: matches!(wanted.before.phase, Some(Phase::Running | Phase::Updating)),
        },
        view: view(cache, reader, wanted, Children::known(reader), delay).await?,
        route,
    })
}

/// A project with unchanged Secrets, database and bucket.
async fn known(
    cache: &ProjectCache,
    reader: &Reader,
    wanted: &Wanted,
    children: Children,
    resolved: Resolved,
) -> Result<Observed, Problem> {
    Ok(Observed {
        parent: reader.parent().clone(),
        view: view(cache, reader, wanted, children, resolved.left).await?,
        basis: Basis::Known(Box::new(resolved)),
        route: route(reader, wanted).await?,
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
    let now = Instant::now();
    let names = components::wanted(&wanted.spec).map(|(component, _)| component.child_name(&wanted.name));
    let names: Vec<String> = names.collect();
    let rollouts = names.iter().filter_map(|name| children.rollout(name));
    // Read the pods of a failed project each time; otherwise it would seem to have recovered.
    let has_failed = wanted.before.phase == Some(Phase::Failed);
    let mut stalled = StalledRollout::after(cache.stalled(&reader.parent().key), rollouts, now);
    let overdue = stalled
        .as_mut()
        .filter(|stalled| has_failed || stalled.left(now).is_zero());
    let mut pod_problems = Vec::new();
    if let Some(stalled) = overdue {
        stalled.asked(now);
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
        repaired: cache.is_repaired(&reader.parent().key),
        next,
        retry_delay: stalled.as_ref().map_or(pods::MOST, |stalled| stalled.left(now)),
        stalled,
    })
}

/// The Secrets and everything that they lead to.
async fn everything(
    setup: &Setup,
    cache: &ProjectCache,
    reader: &Reader,
    wanted: &Wanted,
    within: Duration,
) -> Result<Observed, Problem> {
    let (read, route) = named(reader, wanted).await?;
    let stored = key_secret::stored_passwords(wanted, &read, &setup.fingerprints);
    let last = cache.last_check(&reader.parent().key, within);
    let check = check(setup, last, (&read, &stored)).await;
    let children = Children::known(reader);
    Ok(Observed {
        parent: reader.parent().clone(),
        view: view(cache, reader, wanted, children, cache.check_every()).await?,
        basis: Basis::Checked {
            read: Box::new(read),
            check: Box::new(check),
            request: stored.request,
        },
        route,
    })
}

/// The objects that the spec names.
async fn named(reader: &Reader, wanted: &Wanted) -> Result<(Read, Option<HTTPRoute>), Problem> {
    let fetch = secrets::fetch(reader, wanted.to_read());
    let (fetched, route) = tokio::try_join!(fetch, route(reader, wanted))?;
    Ok((secrets::read(&fetched, wanted)?, route))
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
