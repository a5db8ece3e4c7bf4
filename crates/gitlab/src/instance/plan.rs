//! Plans the writes for an instance. Backends are created in parallel; the release waits for everything that it needs.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::{ApiResource, DynamicObject};
use serde_json::{Value, json};
use stanchion_kernel::Problem;
use stanchion_kernel::apply::{Intent, Takeover, decide, is_owned};
use stanchion_kernel::context::Subject;
use stanchion_kernel::foreign::{Foreign, Served};

use super::farewell;
use super::findings::{Account, Course, Findings, Obstacle, database};
use super::observe::{Observed, Seen, is_made_here};
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
    pub deeds: Vec<Deed>,
    /// What blocks the instance after these writes.
    pub obstacle: Option<Obstacle>,
    /// Whether the Secrets of the buckets are up to date after these writes.
    pub storage_settled: bool,
}

/// One write.
pub enum Deed {
    /// A Secret.
    Secret(Intent),
    /// A `ConfigMap`.
    ConfigMap(Intent),
    /// An object of a third-party kind.
    Foreign(ApiResource, Intent),
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
        (Target::Instance(wanted), Observed::Instance(seen)) => instance(wanted, seen),
        (Target::Leaving(leaving), Observed::Leaving(remains)) => farewell::plan(&leaving.name, remains),
        _ => Ok(Plan::default()),
    }
}

fn instance(wanted: &Wanted, seen: &Seen) -> Result<Plan, Problem> {
    let findings = Findings::of(wanted, seen);
    let mut plan = Plan {
        obstacle: findings.before_ready().cloned(),
        ..Plan::default()
    };
    if let Some(subject) = &seen.subject {
        account(&mut plan, wanted, seen, subject, &findings)?;
    }
    let (Some(subject), Ok(course), Ok(profile)) = (&seen.subject, &findings.course, &findings.profile)
    else {
        return Ok(plan);
    };
    let asking = wanted.asking(profile.as_ref().map(|profile| &profile.defaults));
    backends(&mut plan, wanted, seen, subject, &asking, course)?;
    plan.storage_settled = findings.storage.is_ok();
    if let (Ok(Some(buckets)), false) = (&findings.storage, seen.storage_settled) {
        for secret in secrets::objects(&wanted.name, buckets)? {
            let live = seen.secrets.get(name_of(&secret));
            let intent = Intent::new(&secret, subject)?;
            // A predecessor's Secret has the same name and no owner, and is listed in the status.
            let is_predecessors = wanted.secrets.iter().any(|name| name == name_of(&secret));
            let takeover = if is_predecessors {
                Takeover::Adopt
            } else {
                Takeover::Refuse
            };
            plan.deeds
                .extend(decide(intent, live, subject, takeover)?.map(Deed::Secret));
        }
    }
    if let (Some(version), Some(database)) = (course.running, database(wanted, seen)) {
        let record = Intent::to_keep(&record::object(&wanted.name, version, &database), subject)?;
        plan.deeds
            .extend(keep_map(record, seen.record.as_ref(), subject)?);
    }
    if findings.before_release().is_some() {
        return Ok(plan);
    }
    // Both are served; otherwise there would be an obstacle.
    let (Some(repositories), Some(releases)) = (&seen.repository_kind, &seen.release_kind) else {
        return Ok(plan);
    };
    let Ok(repository) = &findings.repository else {
        return Ok(plan);
    };
    let repository = flux::helm_repository(&wanted.name, repository, repositories);
    let intent = decide(
        Intent::new(&repository, subject)?,
        seen.repository.as_ref(),
        subject,
        Takeover::Refuse,
    )?;
    let repository = intent.map(|intent| Deed::Foreign(repositories.resource.clone(), intent));
    plan.deeds.extend(repository);
    let release = release(wanted, seen, subject, &findings, course, releases)?;
    if release.is_none() && findings.release.as_ref().is_some_and(Release::is_done) {
        plan.deeds.extend(unused_secrets(wanted, seen, subject));
    }
    plan.deeds.extend(release);
    Ok(plan)
}

/// The Secrets of a storage that is no longer named: nothing reads them once Flux has installed GitLab without them.
fn unused_secrets(wanted: &Wanted, seen: &Seen, subject: &Subject) -> Vec<Deed> {
    if wanted.spec.object_storage.credentials_secret.is_some() {
        return Vec::new();
    }
    let made = secrets::names(&wanted.name);
    let live = made.iter().filter_map(|name| seen.secrets.get(name));
    live.filter(|secret| is_owned(&secret.metadata, subject))
        .map(|secret| Deed::RemoveSecret(Box::new(secret.metadata.clone())))
        .collect()
}

/// The `ServiceAccount` is written before everything for Flux, and deleted when no release names it.
fn account(
    plan: &mut Plan,
    wanted: &Wanted,
    seen: &Seen,
    subject: &Subject,
    findings: &Findings,
) -> Result<(), Problem> {
    let Ok(account) = &findings.account else {
        return Ok(());
    };
    let release = findings.release.as_ref();
    let used = release.and_then(|release| release.account.as_ref());
    let is_at_rest = release.is_none_or(Release::is_done);
    let own = account::name(&wanted.name);
    if matches!(account, Account::Own(_)) {
        plan.deeds
            .extend(make_account(&wanted.name, &seen.account, subject)?);
    } else if used != Some(&own) && is_at_rest {
        plan.deeds.extend(remove_account(&wanted.name, &seen.account));
    }
    let (Some(name), Some(kind), Some(release)) = (account.name(), &seen.release_kind, &seen.release) else {
        return Ok(());
    };
    // A release that waits for something else must not keep Flux's permissions.
    if used.is_none() && findings.before_release().is_some() && is_owned(&release.metadata, subject) {
        let release = Box::new(release.clone());
        plan.deeds
            .push(Deed::Restrict(kind.resource.clone(), release, name.to_owned()));
    }
    Ok(())
}

/// The writes that create an instance's `ServiceAccount`.
pub(super) fn make_account(
    instance: &str,
    found: &account::Found,
    subject: &Subject,
) -> Result<Vec<Deed>, Problem> {
    let account = Intent::to_keep(&account::account(instance), subject)?;
    let account = decide(account, found.account.as_ref(), subject, Takeover::Adopt)?;
    let binding = Intent::to_keep(&account::binding(instance, &subject.key.namespace), subject)?;
    let binding = decide(binding, found.binding.as_ref(), subject, Takeover::Adopt)?;
    let deeds = [account.map(Deed::Account), binding.map(Deed::Binding)];
    Ok(deeds.into_iter().flatten().collect())
}

/// The writes that delete an instance's `ServiceAccount`. Objects of somebody else stay.
pub(super) fn remove_account(instance: &str, found: &account::Found) -> Vec<Deed> {
    let ours =
        |meta: &kube::core::ObjectMeta| account::is_ours(meta, instance).then(|| Box::new(meta.clone()));
    let binding = found.binding.as_ref().and_then(|it| ours(&it.metadata));
    let account = found.account.as_ref().and_then(|it| ours(&it.metadata));
    let deeds = [binding.map(Deed::RemoveBinding), account.map(Deed::RemoveAccount)];
    deeds.into_iter().flatten().collect()
}

fn backends(
    plan: &mut Plan,
    wanted: &Wanted,
    seen: &Seen,
    subject: &Subject,
    asking: &crate::backends::wish::Asking<'_>,
    course: &Course,
) -> Result<(), Problem> {
    let spec = asking.spec;
    if spec.postgres.managed && seen.backend(&PERCONA).served.is_some() {
        let init = of_instance(percona::init(asking.instance), subject);
        let init = Intent::to_keep(&init, subject)?;
        let init = keep_map(init, seen.init.as_ref(), subject)?;
        plan.deeds.extend(init);
        let wish = asking.postgres(postgres_version(seen, spec.postgres.version, course));
        keep(plan, seen, subject, &PERCONA, &percona::cluster(&wish))?;
    }
    if spec.redis.managed {
        let wish = asking.redis();
        let objects = redis::objects(&wish);
        if objects
            .iter()
            .all(|(kind, _)| seen.backend(kind).served.is_some())
        {
            // The password of somebody else's Redis is not generated.
            let is_theirs = objects
                .iter()
                .any(|(kind, _)| seen.backend(kind).is_somebody_elses());
            if let Some(password) = seen.password.as_ref().filter(|_| !is_theirs) {
                let auth = of_instance(redis::auth(asking.instance, password), subject);
                plan.deeds.push(Deed::Secret(Intent::to_keep(&auth, subject)?));
            }
            for (kind, object) in objects {
                keep(plan, seen, subject, kind, &object)?;
            }
        }
    }
    if wanted.needs_elasticsearch() {
        let object = elasticsearch::object(&asking.elasticsearch());
        keep(plan, seen, subject, &ELASTICSEARCH, &object)?;
    }
    Ok(())
}

/// A `ConfigMap` that outlives the instance. One that somebody else created under this name stays as it is.
fn keep_map(intent: Intent, live: Option<&ConfigMap>, subject: &Subject) -> Result<Option<Deed>, Problem> {
    let takeover = match live {
        Some(live) if !is_made_here(&live.metadata) => Takeover::Refuse,
        _ => Takeover::Adopt,
    };
    Ok(decide(intent, live, subject, takeover)?.map(Deed::ConfigMap))
}

/// The major version of the database: an existing one stays, because an upgrade needs more than a new number.
fn postgres_version(seen: &Seen, asked: Option<u32>, course: &Course) -> u32 {
    percona::version(seen.backend(&PERCONA).object.as_ref())
        .or(asked)
        .unwrap_or_else(|| *versions::postgres(&course.now.version).end())
}

/// Adds the instance's name as a label, so that objects that outlive it name it.
fn of_instance(mut object: Value, subject: &Subject) -> Value {
    let label = json!({ "metadata": { "labels": { account::INSTANCE: subject.key.name } } });
    if let (Value::Object(object), Value::Object(label)) = (&mut object, &label) {
        values::merge(object, label);
    }
    object
}

/// An object that outlives the instance. An existing one that the operator did not create is used unchanged: it may be
/// somebody's database.
fn keep(
    plan: &mut Plan,
    seen: &Seen,
    subject: &Subject,
    kind: &'static Foreign,
    object: &Value,
) -> Result<(), Problem> {
    let backend = seen.backend(kind);
    let Some(served) = &backend.served else {
        return Ok(());
    };
    if backend.is_somebody_elses() {
        return Ok(());
    }
    let live = backend.object.as_ref();
    let intent = Intent::to_keep(&of_instance(object.clone(), subject), subject)?;
    let intent = decide(intent, live, subject, Takeover::Adopt)?;
    let deed = intent.map(|intent| Deed::Foreign(served.resource.clone(), intent));
    plan.deeds.extend(deed);
    Ok(())
}

fn release(
    wanted: &Wanted,
    seen: &Seen,
    subject: &Subject,
    findings: &Findings,
    course: &Course,
    kind: &Served,
) -> Result<Option<Deed>, Problem> {
    let profile = findings
        .profile
        .as_ref()
        .ok()
        .and_then(|profile| profile.as_ref().map(|profile| profile.defaults.clone()))
        .unwrap_or_default();
    let values = values::compose(&Input {
        name: &wanted.name,
        spec: &wanted.spec,
        profile: &profile,
        step_values: &course.now.values,
        chart: &ChartVersion::of(&course.now.chart),
        psql: findings.postgres.as_ref().ok().and_then(Option::as_ref),
        redis: findings.redis.as_ref().ok().and_then(Option::as_ref),
        buckets: findings.storage.as_ref().ok().and_then(Option::as_ref),
        mail: findings.mail.as_ref().ok().and_then(Option::as_ref),
        checksums: &seen.checksums,
    });
    let (live, before) = (seen.release.as_ref(), findings.release.as_ref());
    let chart = Chart {
        object: before.map_or_else(|| flux::name(&wanted.name), |release| release.object.clone()),
        release: match before {
            Some(release) => release.name.clone(),
            None => Some(wanted.name.clone()),
        },
        version: course.now.chart.clone(),
        values,
        account: findings
            .account
            .as_ref()
            .ok()
            .and_then(|account| account.name().map(str::to_owned)),
    };
    let object = flux::helm_release(&wanted.name, &chart, kind);
    let intent = decide(Intent::new(&object, subject)?, live, subject, Takeover::Adopt)?;
    Ok(intent.map(|intent| Deed::Release(kind.resource.clone(), intent, live.cloned().map(Box::new))))
}

fn name_of(object: &Value) -> &str {
    object
        .pointer("/metadata/name")
        .and_then(Value::as_str)
        .unwrap_or_default()
}
