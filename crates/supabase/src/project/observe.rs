//! What is there: the Secrets, the database, the bucket, the children. Reads only.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use stanchion_kernel::context::Subject;
use stanchion_kernel::{Problem, Reader};
use stanchion_postgres as pg;

use super::children::Children;
use super::contact::{CHECK_EVERY, Contact, Initialised, check};
use super::memory::Memory;
use super::pods;
use super::route::HTTPRoute;
use super::secrets::{self, Read};
use super::target::{Departure, Target, Wanted};
use crate::Setup;
use crate::components::{self, Secrets};
use crate::database::{self, Login};
use crate::keys::{self, Keys, names as key};

/// How long a rollout may take before its pods are asked what holds them up.
const PATIENCE: Duration = Duration::from_secs(10);

/// For how long a project that is deleted waits for its database.
const HOLD: SignedDuration = SignedDuration::from_mins(5);

/// What was read.
pub enum Observed {
    /// For a project that shall be there.
    Project(Box<Present>),
    /// For one that was brought in order and has not changed since: its pods come and go.
    Settled(Box<Look>),
    /// For one that is being deleted: the way to its database, if there is one and it shall be gone.
    Leaving(Option<Box<pg::Target>>),
    /// Nothing was looked at.
    Nothing,
}

/// What there is of a project.
pub struct Present {
    /// The project, as reads and writes know it.
    pub subject: Subject,
    /// What the user's Secrets say.
    pub read: Read,
    /// The Secret with the keys, as it is.
    pub key_secret: Option<Secret>,
    /// What pods take values from: the keys complete, and the user's Secrets.
    pub secrets: Secrets,
    /// How the database was reached.
    pub postgres: Contact,
    /// How the bucket was reached.
    pub s3: Contact,
    /// Who logs in to the database, if everything is there.
    pub database: Option<Initialised>,
    /// What the database needs.
    pub request: database::Request,
    /// The children.
    pub look: Look,
    /// The route of the Gateway API, where one is or was asked for.
    pub route: Option<HTTPRoute>,
}

/// What there is of the children.
pub struct Look {
    /// The children.
    pub children: Children,
    /// Why components are not ready, where that was asked.
    pub troubles: Vec<pods::Trouble>,
    /// After how long the dependencies are to be asked.
    pub next: Duration,
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
    if let Some(look) = settled(memory, read, wanted).await? {
        return Ok(Observed::Settled(Box::new(look)));
    }
    let present = Box::pin(present(setup, memory, read, wanted)).await?;
    Ok(Observed::Project(Box::new(present)))
}

/// The way to the database of a project that is being deleted. Without its Secrets there is none: they may go first,
/// with their namespace, and nothing holds that up. Nor does a database that does not answer, for ever.
async fn way_back(reader: &Reader, departure: &Departure) -> Result<Option<Box<pg::Target>>, Problem> {
    let held = departure
        .since
        .map(|since| Timestamp::now().duration_since(since))
        .is_some_and(|held| held > HOLD);
    if held {
        tracing::warn!("the database did not let itself be cleaned up; what was made there is left");
        return Ok(None);
    }
    let wanted = &departure.wanted;
    let fetched = secrets::fetch(reader, wanted.administrator_secrets(), BTreeSet::new()).await?;
    match secrets::administrator(&fetched, wanted) {
        Ok((_, target)) => Ok(Some(Box::new(target))),
        Err(problem) => {
            tracing::warn!(problem = ?problem, "nobody knows the database any more; what was made there is left");
            Ok(None)
        }
    }
}

/// A project that was brought in order, if nothing has changed that it was brought in order by.
async fn settled(memory: &Memory, reader: &Reader, wanted: &Wanted) -> Result<Option<Look>, Problem> {
    let Some((before, next)) = memory.settled(&reader.subject().key, CHECK_EVERY) else {
        return Ok(None);
    };
    let children = Children::known(reader);
    let same = before.generation == wanted.generation
        && before.rotate == wanted.rotate
        && children.fingerprint() == Some(before.children);
    // Each is asked, whatever the others say: what is not asked for wakes no longer.
    let changed = before
        .secrets
        .iter()
        .filter(|name| !reader.is_unchanged::<Secret>(name))
        .count()
        + before
            .config_maps
            .iter()
            .filter(|name| !reader.is_unchanged::<ConfigMap>(name))
            .count();
    let now = Timestamp::now();
    let due = wanted.before.previous_until.is_some_and(|until| until <= now);
    if !same || changed > 0 || due {
        return Ok(None);
    }
    look(reader, wanted, children, next, now).await.map(Some)
}

/// The children, and what holds them up where that takes long.
async fn look(
    reader: &Reader,
    wanted: &Wanted,
    children: Children,
    next: Duration,
    now: Timestamp,
) -> Result<Look, Problem> {
    let mut troubles = Vec::new();
    if is_overdue(wanted, &children, now) {
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
    })
}

async fn present(
    setup: &Setup,
    memory: &Memory,
    reader: &Reader,
    wanted: &Wanted,
) -> Result<Present, Problem> {
    let now = Timestamp::now();
    let named = wanted.secret_names().into_iter().collect();
    let fetch = secrets::fetch(reader, named, wanted.config_maps());
    let (fetched, route) = tokio::try_join!(fetch, route(reader, wanted))?;
    let read = secrets::read(&fetched, wanted)?;
    let key_secret = fetched.secret(&wanted.key_secret()).cloned();
    let keys = complete_keys(wanted, &read, key_secret.as_ref(), now)?;
    let request = database_request(wanted, &keys);
    let checked = check(setup, memory, reader, &read, &request).await;
    let look = look(reader, wanted, Children::known(reader), CHECK_EVERY, now).await?;
    Ok(Present {
        subject: reader.subject().clone(),
        secrets: Secrets {
            keys,
            others: read.others.clone(),
        },
        read,
        key_secret,
        postgres: checked.postgres,
        s3: checked.s3,
        database: checked.database,
        request,
        look,
        route,
    })
}

/// The route, where one is or was wanted.
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

fn complete_keys(
    wanted: &Wanted,
    read: &Read,
    secret: Option<&Secret>,
    now: Timestamp,
) -> Result<Keys, Problem> {
    let data = secret.and_then(|secret| secret.data.clone()).unwrap_or_default();
    let keys = Keys::from_data(data.into_iter().map(|(key, value)| (key, value.0)));
    let request = keys::Request {
        own_secret: read.own_secret.clone(),
        rotate: wanted.rotate.as_deref(),
        grace: wanted.grace,
        logins: &components::logins(&wanted.spec),
        generated: &components::generated(&wanted.spec),
    };
    keys::complete(keys, &request, &mut rand::rng(), now)
        .map_err(|error| Problem::human("BrokenKey", error.to_string()))
}

fn database_request(wanted: &Wanted, keys: &Keys) -> database::Request {
    let password = |login: Login| Some((login, keys.get(key::password(login))?.clone()));
    database::Request {
        project: wanted.mark(),
        passwords: components::logins(&wanted.spec)
            .into_iter()
            .filter_map(password)
            .collect(),
    }
}

/// Whether a rollout takes so long that its pods should be asked.
fn is_overdue(wanted: &Wanted, children: &Children, now: Timestamp) -> bool {
    let waiting = wanted.before.said.is_some_and(|said| {
        let since = now.duration_since(said);
        since >= SignedDuration::try_from(PATIENCE).unwrap_or_default()
    });
    let incomplete = components::wanted(&wanted.spec).any(|(component, _)| {
        children
            .rollout(&component.child_name(&wanted.name))
            .is_some_and(|rollout| !rollout.is_complete())
    });
    incomplete && waiting
}
