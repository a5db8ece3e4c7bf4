//! Plans the Secret with the keys, the database and the children, in this order, because each needs the one before.

use std::sync::Arc;
use std::time::Duration;

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use serde_json::Value;
use stanchion_kernel::apply::{self, Intent, ObjectChange, Takeover};
use stanchion_kernel::context::Parent;
use stanchion_kernel::problem::Retry;
use stanchion_kernel::{Inputs, Problem};
use stanchion_postgres as pg;

use super::cache::{Checked, Resolved};
use super::children::HTTPRoute;
use super::dependency_check::{Check, Initialised, check_inputs};
use super::key_secret;
use super::observe::{Basis, Observed};
use super::render_inputs::RenderInputs;
use super::secrets::Read;
use super::target::Wanted;
use crate::components::{self, Project};
use crate::database::{self, Names};
use crate::network;

/// The plan of a reconcile.
pub enum Plan {
    /// Nothing: nothing has changed.
    Nothing,
    /// Wait: a dependency does not answer, or something that only a person can change is in the way.
    Wait(Problem),
    /// Repair these children, and wait likewise.
    Repair(Vec<ObjectChange>, Problem),
    /// Check the dependencies first: more than a repair of the children is needed.
    CheckDependencies,
    /// Apply these changes.
    Ensure(Box<EnsurePlan>),
}

/// The changes of an active project.
pub struct EnsurePlan {
    /// The Secret with the keys, if it differs. It is written first: a password that is in no Secret is lost with the
    /// process.
    pub keys: Option<ObjectChange>,
    /// The inputs of the children, with the complete keys.
    pub render_inputs: Arc<RenderInputs>,
    /// The results of a new dependency check, with the digest of the complete passwords.
    pub checked: Option<Checked>,
    /// The changes after the keys.
    pub database: DatabasePlan,
}

/// The database and the children.
pub enum DatabasePlan {
    /// The database is prepared; the changes of the children.
    Prepared(Initialised, Box<ChildChanges>),
    /// The database has to be prepared first. Only then the names of its logins are known, and with them the children.
    Prepare(Box<Initialisation>),
}

/// The input for preparing a database.
pub struct Initialisation {
    /// The administrator's connection.
    pub target: pg::ConnectionConfig,
    /// What the project needs there.
    pub request: database::Request,
    /// Makes the salts of new verifiers.
    pub random: StdRng,
}

/// The changes of the children.
pub struct ChildChanges {
    /// The changes, in order.
    pub children: Vec<ObjectChange>,
    /// Every desired child, except for the route.
    pub intents: Vec<Intent>,
    /// The change of the route, if it differs.
    pub route: Option<ObjectChange>,
}

/// Decides what to do. Refusals are part of the plan, so that `apply` remembers what was read.
pub(crate) fn plan(wanted: &Wanted, observed: &Observed, inputs: &mut Inputs<'_>) -> Plan {
    let plan = match &observed.basis {
        Basis::Unchanged => Ok(Plan::Nothing),
        Basis::FirstLook { read, names, .. } => first(wanted, observed, read, names, inputs),
        Basis::Known(resolved) => known(wanted, observed, resolved),
        Basis::Checked { read, check, request } => checked(wanted, observed, (read, check, request), inputs),
    };
    plan.unwrap_or_else(Plan::Wait)
}

/// The first reconcile by this process: only children are repaired. New keys, or the end of old ones, need the
/// dependencies. So does another intent, because a Secret may have changed in the meantime: nothing is rolled out
/// before it is known to work.
fn first(
    wanted: &Wanted,
    observed: &Observed,
    read: &Read,
    names: &Names,
    inputs: &mut Inputs<'_>,
) -> Result<Plan, Problem> {
    let Some((render_inputs, changes)) = unchanged_keys(wanted, observed, read, names, inputs)? else {
        return Ok(Plan::CheckDependencies);
    };
    if !changes.children.iter().all(ObjectChange::is_repair) {
        return Ok(Plan::CheckDependencies);
    }
    Ok(Plan::Ensure(Box::new(EnsurePlan {
        keys: None,
        render_inputs,
        checked: None,
        database: DatabasePlan::Prepared(Initialised::unchecked(names.clone()), Box::new(changes)),
    })))
}

/// The changes of the children, if the keys stay as they are.
fn unchanged_keys(
    wanted: &Wanted,
    observed: &Observed,
    read: &Read,
    names: &Names,
    inputs: &mut Inputs<'_>,
) -> Result<Option<(Arc<RenderInputs>, ChildChanges)>, Problem> {
    let keys = key_secret::complete(wanted, read, false, inputs)?;
    if keys.is_rotating() || key_secret::change(wanted, read, &keys, &observed.parent)?.is_some() {
        return Ok(None);
    }
    let render_inputs = Arc::new(RenderInputs::new(wanted, read, &keys));
    let changes = changes(wanted, observed, &render_inputs, names)?;
    Ok(Some((render_inputs, changes)))
}

/// The database or the bucket is lost: a child that somebody has deleted or changed is repaired nevertheless. A child
/// with another intent than before waits, because it may have the values that do not work.
fn repair(
    wanted: &Wanted,
    observed: &Observed,
    read: &Read,
    inputs: &mut Inputs<'_>,
) -> Result<Vec<ObjectChange>, Problem> {
    let Some(names) = wanted.before.deployed_as() else {
        return Ok(Vec::new());
    };
    let Some((_, mut changes)) = unchanged_keys(wanted, observed, read, names, inputs)? else {
        return Ok(Vec::new());
    };
    // Beside another intent, a missing child may be that of a new component: only one whose Deployment exists was there.
    let only_repairs = changes.children.iter().all(ObjectChange::is_repair);
    let was_there = |change: &ObjectChange| {
        let is_beside = || observed.view.children.rollout(change.name()).is_some();
        only_repairs || matches!(change, ObjectChange::Verify(..)) || is_beside()
    };
    changes
        .children
        .retain(|change| change.is_repair() && was_there(change));
    Ok(changes.children)
}

/// Unchanged Secrets, database and bucket.
fn known(wanted: &Wanted, observed: &Observed, resolved: &Resolved) -> Result<Plan, Problem> {
    let database = resolved.database.clone();
    let changes = changes(wanted, observed, &resolved.render_inputs, &database.names)?;
    Ok(Plan::Ensure(Box::new(EnsurePlan {
        keys: None,
        render_inputs: Arc::clone(&resolved.render_inputs),
        checked: None,
        database: DatabasePlan::Prepared(database, Box::new(changes)),
    })))
}

/// Everything was read.
fn checked(
    wanted: &Wanted,
    observed: &Observed,
    (read, check, request): (&Read, &Check, &database::Request),
    inputs: &mut Inputs<'_>,
) -> Result<Plan, Problem> {
    let found = &check.checked;
    let lost = found.postgres.problem("PostgreSQL");
    if let Some(problem) = lost.or_else(|| found.s3.problem("S3")) {
        let problem = retried_within(problem, observed.view.next);
        // What hinders a repair is reported once the database and the bucket answer.
        let repairs = repair(wanted, observed, read, inputs).unwrap_or_default();
        return Ok(if repairs.is_empty() {
            Plan::Wait(problem)
        } else {
            Plan::Repair(repairs, problem)
        });
    }
    let mut keys = key_secret::complete(wanted, read, false, inputs)?;
    let mut render_inputs = RenderInputs::new(wanted, read, &keys);
    if let Some(database) = &found.database
        && keys.is_rotating()
        && is_rolled_out(wanted, observed, &render_inputs, &database.names)
    {
        keys = key_secret::complete(wanted, read, true, inputs)?;
        render_inputs = RenderInputs::new(wanted, read, &keys);
    }
    let request = key_secret::with_passwords(request, &keys);
    let checked = check.is_new.then(|| Checked {
        inputs: check_inputs(read, &request),
        ..found.clone()
    });
    let database = match &found.database {
        Some(database) => {
            let changes = changes(wanted, observed, &render_inputs, &database.names)?;
            DatabasePlan::Prepared(database.clone(), Box::new(changes))
        }
        None => DatabasePlan::Prepare(Box::new(Initialisation {
            target: read.target.clone(),
            request,
            random: StdRng::from_rng(&mut inputs.random),
        })),
    };
    Ok(Plan::Ensure(Box::new(EnsurePlan {
        keys: key_secret::change(wanted, read, &keys, &observed.parent)?,
        render_inputs: Arc::new(render_inputs),
        checked,
        database,
    })))
}

/// A problem with the database or the bucket. The other one has a condition, too, so a project with such a problem is checked as
/// often as one without.
fn retried_within(problem: Problem, check_every: Duration) -> Problem {
    match problem.reaction().retry {
        Retry::After(later) => problem.with_retry(Retry::After(later.min(check_every))),
        Retry::Backoff | Retry::Never => problem,
    }
}

/// Whether every pod has these keys: the children are rendered from them, and have rolled out.
fn is_rolled_out(wanted: &Wanted, observed: &Observed, render_inputs: &RenderInputs, names: &Names) -> bool {
    let children = &observed.view.children;
    let intents = intents(&render_inputs.project(wanted, names), &observed.parent);
    children.have_rolled_out() && intents.is_ok_and(|intents| children.are(&intents))
}

/// The changes of the children, once the names of the logins are known.
pub(crate) fn changes(
    wanted: &Wanted,
    observed: &Observed,
    render_inputs: &RenderInputs,
    names: &Names,
) -> Result<ChildChanges, Problem> {
    let project = render_inputs.project(wanted, names);
    let intents = intents(&project, &observed.parent)?;
    let children = &observed.view.children;
    Ok(ChildChanges {
        children: children.hand_over(&children.changes(&intents)?),
        intents,
        route: route(network::http_route(&project), observed)?,
    })
}

fn intents(project: &Project<'_>, parent: &Parent) -> Result<Vec<Intent>, Problem> {
    let objects = objects(project);
    objects.iter().map(|object| Intent::new(object, parent)).collect()
}

/// Every object of the project, except for its Secret and its route, in the order of the components.
pub(crate) fn objects(project: &Project<'_>) -> Vec<Value> {
    let mut all = Vec::new();
    for (component, options) in components::wanted(project.spec) {
        all.extend(component.config_map(project));
        all.push(components::service(component, project));
        all.push(components::deployment(component, options, project));
        all.extend(network::autoscaler(component, options, project));
        all.extend(network::disruption_budget(component, project));
    }
    all.extend(network::ingress(project));
    all.extend(network::network_policies(project));
    all
}

/// The change of the route. One that is not desired any more is deleted, if it is the project's.
fn route(wish: Option<Value>, observed: &Observed) -> Result<Option<ObjectChange>, Problem> {
    let (live, parent) = (observed.route.as_ref(), &observed.parent);
    let Some(wish) = wish else {
        let owned = live.filter(|route| apply::is_owned(&route.metadata, parent));
        return Ok(owned.map(|route| ObjectChange::delete::<HTTPRoute>(&route.metadata, &())));
    };
    let intent = Intent::new(&wish, parent)?;
    let intent = apply::decide::<HTTPRoute>(intent, live, parent, Takeover::Refuse)?;
    Ok(intent.map(ObjectChange::Apply))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_bucket_delays_no_check_of_the_database() {
        const EVERY: Duration = Duration::from_secs(30);
        let refused = retried_within(Problem::human("AccessDenied", "S3: the key is wrong"), EVERY);
        assert_eq!(refused.reaction().retry, Retry::After(EVERY));
        let lost = retried_within(Problem::transient("Unreachable", "S3: no answer"), EVERY);
        assert_eq!(lost.reaction().retry, Retry::Backoff);
    }
}
