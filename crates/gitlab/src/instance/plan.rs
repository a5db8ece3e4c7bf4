//! Plans the writes for an instance. Backends are created in parallel; the release waits for everything that it needs.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::{ApiResource, DynamicObject};
use serde_json::{Value, json};
use stanchion_kernel::Problem;
use stanchion_kernel::apply::{Intent, Takeover, decide, is_owned};
use stanchion_kernel::context::Parent;
use stanchion_kernel::external::{ExternalKind, ServedKind};

use super::cleanup;
use super::observe::{Current, Observed, is_made_here};
use super::prerequisites::{Account, Blocker, Prerequisites, UpgradePlan, database};
use super::secrets;
use super::target::{Target, Wanted};
use crate::account;
use crate::backends::kinds::{ELASTICSEARCH, PERCONA};
use crate::backends::{elasticsearch, percona, redis};
use crate::flux::{self, Chart, Release};
use crate::record;
use crate::values::{self, ChartVersion, Input};
use crate::versions;

/// The plan.
#[derive(Default)]
pub struct Plan {
    /// The writes, in this order.
    pub changes: Vec<ObjectChange>,
    /// What blocks the instance after these writes.
    pub blocker: Option<Blocker>,
    /// Whether the Secrets of the buckets are up to date after these writes.
    pub storage_resolved: bool,
}

/// One write.
pub enum ObjectChange {
    /// A Secret.
    Secret(Intent),
    /// A `ConfigMap`.
    ConfigMap(Intent),
    /// An object of a third-party kind.
    External(ApiResource, Intent),
    /// The release; and a predecessor's object whose fields are adopted first.
    Release(ApiResource, Intent, Option<Box<DynamicObject>>),
    /// The `ServiceAccount` that Flux installs with.
    Account(Intent),
    /// The binding of the `ServiceAccount`.
    Binding(Intent),
    /// Adds this `ServiceAccount` to a release without one, and changes nothing else.
    Restrict(ApiResource, Box<DynamicObject>, String),
    /// Deletes the `ServiceAccount`.
    RemoveAccount(Box<kube::core::ObjectMeta>),
    /// Deletes the binding of the `ServiceAccount`.
    RemoveBinding(Box<kube::core::ObjectMeta>),
    /// Deletes the release.
    Uninstall(ApiResource, Box<DynamicObject>),
    /// Deletes a Secret.
    RemoveSecret(Box<kube::core::ObjectMeta>),
}

/// Plans the writes.
pub fn plan(target: &Target, observed: &Observed) -> Result<Plan, Problem> {
    match (target, observed) {
        (Target::Ensure(wanted), Observed::Ensure(current)) => instance(wanted, current),
        (Target::Cleanup(cleanup), Observed::Cleanup(state)) => cleanup::plan(&cleanup.name, state),
        _ => Ok(Plan::default()),
    }
}

fn instance(wanted: &Wanted, current: &Current) -> Result<Plan, Problem> {
    let prerequisites = Prerequisites::of(wanted, current);
    let mut plan = Plan {
        blocker: prerequisites.before_ready().cloned(),
        ..Plan::default()
    };
    if let Some(parent) = &current.parent {
        account(&mut plan, wanted, current, parent, &prerequisites)?;
    }
    let (Some(parent), Ok(upgrade), Ok(profile)) =
        (&current.parent, &prerequisites.upgrade, &prerequisites.profile)
    else {
        return Ok(plan);
    };
    let requests = wanted.requests(profile.as_ref().map(|profile| &profile.defaults));
    backends(&mut plan, wanted, current, parent, &requests, upgrade)?;
    plan.storage_resolved = prerequisites.storage.is_ok();
    if let (Ok(Some(buckets)), false) = (&prerequisites.storage, current.storage_resolved) {
        for secret in secrets::objects(&wanted.name, buckets)? {
            let live = current.secrets.get(name_of(&secret));
            let intent = Intent::new(&secret, parent)?;
            // A predecessor's Secret has the same name and no owner, and is listed in the status.
            let is_predecessors = wanted.secrets.iter().any(|name| name == name_of(&secret));
            let takeover = if is_predecessors {
                Takeover::Adopt
            } else {
                Takeover::Refuse
            };
            plan.changes
                .extend(decide(intent, live, parent, takeover)?.map(ObjectChange::Secret));
        }
    }
    if let (Some(version), Some(database)) = (upgrade.running, database(wanted, current)) {
        let record = Intent::to_keep(&record::object(&wanted.name, version, &database), parent)?;
        plan.changes
            .extend(keep_map(record, current.record.as_ref(), parent)?);
    }
    if prerequisites.before_release().is_some() {
        return Ok(plan);
    }
    // Both are served; otherwise there would be an obstacle.
    let (Some(repositories), Some(releases)) = (&current.repository_kind, &current.release_kind) else {
        return Ok(plan);
    };
    let Ok(repository) = &prerequisites.repository else {
        return Ok(plan);
    };
    let repository = flux::helm_repository(&wanted.name, repository, repositories);
    let intent = decide(
        Intent::new(&repository, parent)?,
        current.repository.as_ref(),
        parent,
        Takeover::Refuse,
    )?;
    let repository = intent.map(|intent| ObjectChange::External(repositories.resource.clone(), intent));
    plan.changes.extend(repository);
    let release = release(wanted, current, parent, &prerequisites, upgrade, releases)?;
    if release.is_none() && prerequisites.release.as_ref().is_some_and(Release::is_done) {
        plan.changes.extend(unused_secrets(wanted, current, parent));
    }
    plan.changes.extend(release);
    Ok(plan)
}

/// The Secrets of a storage that is no longer named: nothing reads them once Flux has installed GitLab without them.
fn unused_secrets(wanted: &Wanted, current: &Current, parent: &Parent) -> Vec<ObjectChange> {
    if wanted.spec.object_storage.credentials_secret.is_some() {
        return Vec::new();
    }
    let made = secrets::names(&wanted.name);
    let live = made.iter().filter_map(|name| current.secrets.get(name));
    live.filter(|secret| is_owned(&secret.metadata, parent))
        .map(|secret| ObjectChange::RemoveSecret(Box::new(secret.metadata.clone())))
        .collect()
}

/// The `ServiceAccount` is written before everything for Flux, and deleted when no release names it.
fn account(
    plan: &mut Plan,
    wanted: &Wanted,
    current: &Current,
    parent: &Parent,
    prerequisites: &Prerequisites,
) -> Result<(), Problem> {
    let Ok(account) = &prerequisites.account else {
        return Ok(());
    };
    let release = prerequisites.release.as_ref();
    let used = release.and_then(|release| release.account.as_ref());
    let is_at_rest = release.is_none_or(Release::is_done);
    let own = account::name(&wanted.name);
    if matches!(account, Account::Own(_)) {
        plan.changes
            .extend(make_account(&wanted.name, &current.account, parent)?);
    } else if used != Some(&own) && is_at_rest {
        plan.changes
            .extend(remove_account(&wanted.name, &current.account));
    }
    let (Some(name), Some(kind), Some(release)) = (account.name(), &current.release_kind, &current.release)
    else {
        return Ok(());
    };
    // A release that waits for something else must not keep Flux's permissions.
    if used.is_none() && prerequisites.before_release().is_some() && is_owned(&release.metadata, parent) {
        let release = Box::new(release.clone());
        plan.changes.push(ObjectChange::Restrict(
            kind.resource.clone(),
            release,
            name.to_owned(),
        ));
    }
    Ok(())
}

/// The writes that create an instance's `ServiceAccount`.
pub(super) fn make_account(
    instance: &str,
    found: &account::Found,
    parent: &Parent,
) -> Result<Vec<ObjectChange>, Problem> {
    let account = Intent::to_keep(&account::account(instance), parent)?;
    let account = decide(account, found.account.as_ref(), parent, Takeover::Adopt)?;
    let binding = Intent::to_keep(&account::binding(instance, &parent.key.namespace), parent)?;
    let binding = decide(binding, found.binding.as_ref(), parent, Takeover::Adopt)?;
    let changes = [
        account.map(ObjectChange::Account),
        binding.map(ObjectChange::Binding),
    ];
    Ok(changes.into_iter().flatten().collect())
}

/// The writes that delete an instance's `ServiceAccount`. Objects of somebody else stay.
pub(super) fn remove_account(instance: &str, found: &account::Found) -> Vec<ObjectChange> {
    let ours =
        |meta: &kube::core::ObjectMeta| account::is_ours(meta, instance).then(|| Box::new(meta.clone()));
    let binding = found.binding.as_ref().and_then(|it| ours(&it.metadata));
    let account = found.account.as_ref().and_then(|it| ours(&it.metadata));
    let changes = [
        binding.map(ObjectChange::RemoveBinding),
        account.map(ObjectChange::RemoveAccount),
    ];
    changes.into_iter().flatten().collect()
}

fn backends(
    plan: &mut Plan,
    wanted: &Wanted,
    current: &Current,
    parent: &Parent,
    requests: &crate::backends::request::BackendRequest<'_>,
    upgrade: &UpgradePlan,
) -> Result<(), Problem> {
    let spec = requests.spec;
    if spec.postgres.managed && current.backend(&PERCONA).served.is_some() {
        let init = of_instance(percona::init(requests.instance), parent);
        let init = Intent::to_keep(&init, parent)?;
        let init = keep_map(init, current.init.as_ref(), parent)?;
        plan.changes.extend(init);
        let request = requests.postgres(postgres_version(current, spec.postgres.version, upgrade));
        keep(plan, current, parent, &PERCONA, &percona::cluster(&request))?;
    }
    if spec.redis.managed {
        let request = requests.redis();
        let objects = redis::objects(&request);
        if objects
            .iter()
            .all(|(kind, _)| current.backend(kind).served.is_some())
        {
            // The password of somebody else's Redis is not generated.
            let is_theirs = objects
                .iter()
                .any(|(kind, _)| current.backend(kind).is_somebody_elses());
            if let Some(password) = current.password.as_ref().filter(|_| !is_theirs) {
                let auth = of_instance(redis::auth(requests.instance, password), parent);
                plan.changes
                    .push(ObjectChange::Secret(Intent::to_keep(&auth, parent)?));
            }
            for (kind, object) in objects {
                keep(plan, current, parent, kind, &object)?;
            }
        }
    }
    if wanted.needs_elasticsearch() {
        let object = elasticsearch::object(&requests.elasticsearch());
        keep(plan, current, parent, &ELASTICSEARCH, &object)?;
    }
    Ok(())
}

/// A `ConfigMap` that outlives the instance. One that somebody else created under this name stays as it is.
fn keep_map(
    intent: Intent,
    live: Option<&ConfigMap>,
    parent: &Parent,
) -> Result<Option<ObjectChange>, Problem> {
    let takeover = match live {
        Some(live) if !is_made_here(&live.metadata) => Takeover::Refuse,
        _ => Takeover::Adopt,
    };
    Ok(decide(intent, live, parent, takeover)?.map(ObjectChange::ConfigMap))
}

/// The major version of the database: an existing one stays, because an upgrade needs more than a new number.
fn postgres_version(current: &Current, asked: Option<u32>, upgrade: &UpgradePlan) -> u32 {
    percona::version(current.backend(&PERCONA).object.as_ref())
        .or(asked)
        .unwrap_or_else(|| *versions::postgres(&upgrade.now.version).end())
}

/// Adds the instance's name as a label, so that objects that outlive it name it.
fn of_instance(mut object: Value, parent: &Parent) -> Value {
    let label = json!({ "metadata": { "labels": { account::INSTANCE: parent.key.name } } });
    if let (Value::Object(object), Value::Object(label)) = (&mut object, &label) {
        values::merge(object, label);
    }
    object
}

/// An object that outlives the instance. An existing one that the operator did not create is used unchanged: it may be
/// somebody's database.
fn keep(
    plan: &mut Plan,
    current: &Current,
    parent: &Parent,
    kind: &'static ExternalKind,
    object: &Value,
) -> Result<(), Problem> {
    let backend = current.backend(kind);
    let Some(served) = &backend.served else {
        return Ok(());
    };
    if backend.is_somebody_elses() {
        return Ok(());
    }
    let live = backend.object.as_ref();
    let intent = Intent::to_keep(&of_instance(object.clone(), parent), parent)?;
    let intent = decide(intent, live, parent, Takeover::Adopt)?;
    let change = intent.map(|intent| ObjectChange::External(served.resource.clone(), intent));
    plan.changes.extend(change);
    Ok(())
}

fn release(
    wanted: &Wanted,
    current: &Current,
    parent: &Parent,
    prerequisites: &Prerequisites,
    upgrade: &UpgradePlan,
    kind: &ServedKind,
) -> Result<Option<ObjectChange>, Problem> {
    let profile = prerequisites
        .profile
        .as_ref()
        .ok()
        .and_then(|profile| profile.as_ref().map(|profile| profile.defaults.clone()))
        .unwrap_or_default();
    let values = values::compose(&Input {
        name: &wanted.name,
        spec: &wanted.spec,
        profile: &profile,
        step_values: &upgrade.now.values,
        chart: &ChartVersion::of(&upgrade.now.chart),
        psql: prerequisites.postgres.as_ref().ok().and_then(Option::as_ref),
        redis: prerequisites.redis.as_ref().ok().and_then(Option::as_ref),
        buckets: prerequisites.storage.as_ref().ok().and_then(Option::as_ref),
        mail: prerequisites.mail.as_ref().ok().and_then(Option::as_ref),
        checksums: &current.checksums,
    });
    let (live, before) = (current.release.as_ref(), prerequisites.release.as_ref());
    let chart = Chart {
        object: before.map_or_else(|| flux::name(&wanted.name), |release| release.object.clone()),
        release: match before {
            Some(release) => release.name.clone(),
            None => Some(wanted.name.clone()),
        },
        version: upgrade.now.chart.clone(),
        values,
        account: prerequisites
            .account
            .as_ref()
            .ok()
            .and_then(|account| account.name().map(str::to_owned)),
    };
    let object = flux::helm_release(&wanted.name, &chart, kind);
    let intent = decide(Intent::new(&object, parent)?, live, parent, Takeover::Adopt)?;
    Ok(
        intent
            .map(|intent| ObjectChange::Release(kind.resource.clone(), intent, live.cloned().map(Box::new))),
    )
}

fn name_of(object: &Value) -> &str {
    object
        .pointer("/metadata/name")
        .and_then(Value::as_str)
        .unwrap_or_default()
}
