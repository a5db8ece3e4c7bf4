//! Plans the Secret with the keys, the database and the children, in this order, because each needs the one before.

use std::sync::Arc;

use jiff::Timestamp;
use kube::core::ObjectMeta;
use rand::RngCore;
use serde_json::Value;
use stanchion_kernel::Problem;
use stanchion_kernel::apply::{self, Intent, Takeover};
use stanchion_postgres as pg;

use super::cache::{Checked, Resolved};
use super::children::{HTTPRoute, ObjectChange};
use super::dependency_check::{Check, Initialised, inputs};
use super::key_secret;
use super::observe::{Basis, Current, Observed};
use super::render_inputs::RenderInputs;
use super::secrets::Read;
use super::target::{Target, Wanted};
use crate::components::{self, Project};
use crate::database::{self, Names};
use crate::network;

/// The plan of a reconcile.
pub enum Plan {
    /// Nothing.
    Nothing,
    /// Wait: a dependency does not answer, or something that only a person can change is in the way.
    Wait(Problem),
    /// Check the dependencies first: more than a repair of the children is needed.
    CheckDependencies,
    /// Apply these changes.
    Ensure(Box<EnsurePlan>),
    /// Remove what was created in the database.
    Cleanup(Box<pg::ConnectionConfig>),
}

/// The changes of an active project.
pub struct EnsurePlan {
    /// The Secret with the keys, if it differs. It is written first: a password that is in no Secret is lost with the
    /// process.
    pub keys: Option<Intent>,
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
    Prepared(Initialised, ChildChanges),
    /// The database has to be prepared first. Only then the names of its logins are known, and with them the children.
    Prepare(Box<Initialisation>),
}

/// The input for preparing a database.
pub struct Initialisation {
    /// The administrator's connection.
    pub target: pg::ConnectionConfig,
    /// What the project needs there.
    pub request: database::Request,
}

/// The changes of the children.
pub struct ChildChanges {
    /// The changes, in order.
    pub steps: Vec<ObjectChange>,
    /// Every desired object, except for the route.
    pub objects: Vec<Value>,
    /// The route, if it differs.
    pub route: Option<Intent>,
    /// The route to delete.
    pub stale_route: Option<ObjectMeta>,
}

/// Decides what to do. Refusals are part of the plan, so that `apply` remembers what was read.
pub fn plan(target: &Target, observed: &Observed, random: &mut impl RngCore, now: Timestamp) -> Plan {
    if let Observed::Cleanup(Some(database)) = observed {
        return Plan::Cleanup(database.clone());
    }
    let (Target::Ensure(wanted), Observed::Ensure(current)) = (target, observed) else {
        return Plan::Nothing;
    };
    let plan = match &current.basis {
        Basis::Unchanged => Ok(Plan::Nothing),
        Basis::FirstLook { read, names, .. } => first(wanted, current, read, names, random, now),
        Basis::Known(resolved) => known(wanted, current, resolved),
        Basis::Checked { read, check, request } => {
            checked(wanted, current, (read, check, request), random, now)
        }
    };
    plan.unwrap_or_else(Plan::Wait)
}

/// The first reconcile by this process: only children are repaired. New keys, or the end of old ones, need the
/// dependencies. So does another intent, because a Secret may have changed in the meantime: nothing is rolled out
/// before it is known to work.
fn first(
    wanted: &Wanted,
    current: &Current,
    read: &Read,
    names: &Names,
    random: &mut impl RngCore,
    now: Timestamp,
) -> Result<Plan, Problem> {
    let keys = key_secret::complete(wanted, read, false, random, now)?;
    if keys.is_rotating() || key_secret::change(wanted, read, &keys, &current.parent)?.is_some() {
        return Ok(Plan::CheckDependencies);
    }
    let render_inputs = Arc::new(RenderInputs::new(wanted, read, &keys));
    let changes = changes(wanted, current, &render_inputs, names)?;
    if !changes.steps.iter().all(ObjectChange::is_repair) {
        return Ok(Plan::CheckDependencies);
    }
    Ok(Plan::Ensure(Box::new(EnsurePlan {
        keys: None,
        render_inputs,
        checked: None,
        database: DatabasePlan::Prepared(Initialised::unchecked(names.clone()), changes),
    })))
}

/// Unchanged Secrets, database and bucket.
fn known(wanted: &Wanted, current: &Current, resolved: &Resolved) -> Result<Plan, Problem> {
    let database = resolved.database.clone();
    let changes = changes(wanted, current, &resolved.render_inputs, &database.names)?;
    Ok(Plan::Ensure(Box::new(EnsurePlan {
        keys: None,
        render_inputs: Arc::clone(&resolved.render_inputs),
        checked: None,
        database: DatabasePlan::Prepared(database, changes),
    })))
}

/// Everything was read.
fn checked(
    wanted: &Wanted,
    current: &Current,
    (read, check, request): (&Read, &Check, &database::Request),
    random: &mut impl RngCore,
    now: Timestamp,
) -> Result<Plan, Problem> {
    let found = &check.checked;
    let lost = found.postgres.problem("PostgreSQL");
    if let Some(problem) = lost.or_else(|| found.s3.problem("S3")) {
        return Err(problem);
    }
    let mut keys = key_secret::complete(wanted, read, false, random, now)?;
    let mut render_inputs = RenderInputs::new(wanted, read, &keys);
    if let Some(database) = &found.database
        && keys.is_rotating()
        && is_rolled_out(wanted, current, &render_inputs, &database.names)
    {
        keys = key_secret::complete(wanted, read, true, random, now)?;
        render_inputs = RenderInputs::new(wanted, read, &keys);
    }
    let request = key_secret::with_passwords(request, &keys);
    let checked = check.is_new.then(|| Checked {
        inputs: inputs(read, &request),
        ..found.clone()
    });
    let database = match &found.database {
        Some(database) => {
            let changes = changes(wanted, current, &render_inputs, &database.names)?;
            DatabasePlan::Prepared(database.clone(), changes)
        }
        None => DatabasePlan::Prepare(Box::new(Initialisation {
            target: read.target.clone(),
            request,
        })),
    };
    Ok(Plan::Ensure(Box::new(EnsurePlan {
        keys: key_secret::change(wanted, read, &keys, &current.parent)?,
        render_inputs: Arc::new(render_inputs),
        checked,
        database,
    })))
}

/// Whether every pod has these keys: the children are rendered from them, and have rolled out.
fn is_rolled_out(wanted: &Wanted, current: &Current, render_inputs: &RenderInputs, names: &Names) -> bool {
    let children = &current.view.children;
    let objects = objects(&render_inputs.project(wanted, names));
    children.have_rolled_out() && children.are(&objects, &current.parent)
}

/// The changes of the children, once the names of the logins are known.
pub fn changes(
    wanted: &Wanted,
    current: &Current,
    render_inputs: &RenderInputs,
    names: &Names,
) -> Result<ChildChanges, Problem> {
    let project = render_inputs.project(wanted, names);
    let objects = objects(&project);
    let mut steps = objects
        .iter()
        .map(|object| current.view.children.step(object, &current.parent))
        .collect::<Result<Vec<_>, Problem>>()?;
    steps.extend(current.view.children.left_over(&objects));
    steps.retain(|change| !change.is_nothing());
    let wish = network::http_route(&project);
    Ok(ChildChanges {
        steps,
        objects,
        stale_route: stale_route(wish.as_ref(), current),
        route: wish.map(|wish| route(&wish, current)).transpose()?.flatten(),
    })
}

/// Every object of the project, except for its Secret and its route, in the order of the components.
pub fn objects(project: &Project<'_>) -> Vec<Value> {
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

fn route(wish: &Value, current: &Current) -> Result<Option<Intent>, Problem> {
    let intent = Intent::new(wish, &current.parent)?;
    apply::decide::<HTTPRoute>(intent, current.route.as_ref(), &current.parent, Takeover::Refuse)
}

fn stale_route(wish: Option<&Value>, current: &Current) -> Option<ObjectMeta> {
    let route = current.route.as_ref().filter(|_| wish.is_none())?;
    apply::is_owned(&route.metadata, &current.parent).then(|| route.metadata.clone())
}
