//! Plans the Secret with the keys, the database and the children, in this order, because each needs the one before.

use std::sync::Arc;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::core::ObjectMeta;
use secrecy::ExposeSecret as _;
use serde_json::Value;
use stanchion_kernel::Problem;
use stanchion_kernel::apply::{self, Intent, Takeover};
use stanchion_kernel::context::Parent;
use stanchion_postgres as pg;

use super::children::ObjectChange;
use super::dependency_check::Initialised;
use super::observe::{Current, Database, FoundKeys, Initialisation, Observed};
use super::route::HTTPRoute;
use super::target::{Target, Wanted};
use crate::components::{self, MANAGED_BY, Project};
use crate::network;

/// The plan of a reconcile.
pub enum Plan {
    /// Nothing.
    Nothing,
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
    /// The changes after that.
    pub then: Then,
}

/// The changes after the keys.
pub enum Then {
    /// The children.
    Children(Arc<ChildChanges>),
    /// The database first, because the names of its logins are not known yet.
    Database(Box<Initialisation>),
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

/// Decides what to do.
pub fn plan(target: &Target, observed: &Observed) -> Result<Plan, Problem> {
    if let Observed::Cleanup(Some(database)) = observed {
        return Ok(Plan::Cleanup(database.clone()));
    }
    let (Target::Ensure(wanted), Observed::Ensure(current)) = (target, observed) else {
        return Ok(Plan::Nothing);
    };
    if let Some(problem) = current
        .postgres
        .problem("PostgreSQL")
        .or_else(|| current.s3.problem("S3"))
    {
        return Err(problem);
    }
    let keys = match &current.keys {
        Some(keys) => key_secret(wanted, &current.parent, keys)?,
        None => None,
    };
    let then = match &current.database {
        Database::Complete(database) => Then::Children(match &current.changes {
            Some(decided) => Arc::clone(decided),
            None => Arc::new(changes(wanted, current, database)?),
        }),
        Database::Lacking(initialisation) => Then::Database(initialisation.clone()),
    };
    Ok(Plan::Ensure(Box::new(EnsurePlan { keys, then })))
}

/// The Secret with the keys, if it differs.
pub fn key_secret(wanted: &Wanted, parent: &Parent, keys: &FoundKeys) -> Result<Option<Intent>, Problem> {
    let data = keys.complete.iter().map(|(key, value)| {
        (
            key.to_owned(),
            ByteString(value.expose_secret().as_bytes().to_vec()),
        )
    });
    let labels = [
        ("app.kubernetes.io/instance", wanted.name.as_str()),
        ("app.kubernetes.io/part-of", "supabase"),
        ("app.kubernetes.io/managed-by", MANAGED_BY),
    ];
    let secret = Secret {
        metadata: ObjectMeta {
            name: Some(wanted.key_secret()),
            labels: Some(
                labels
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .into(),
            ),
            ..ObjectMeta::default()
        },
        data: Some(data.collect()),
        ..Secret::default()
    };
    let intent = Intent::new(&secret, parent)?;
    apply::decide(intent, keys.stored.as_ref(), parent, Takeover::Adopt)
}

/// The changes of the children, once the names of the logins are known.
pub fn changes(wanted: &Wanted, current: &Current, database: &Initialised) -> Result<ChildChanges, Problem> {
    let project = current.render_inputs.project(wanted, &database.names);
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
