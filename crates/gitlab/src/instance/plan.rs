//! What to do about what was found. Backends are made side by side; the release waits for all that it stands on.

use kube::core::{ApiResource, DynamicObject};
use serde_json::Value;
use stanchion_kernel::Problem;
use stanchion_kernel::apply::{Intent, Takeover, decide};
use stanchion_kernel::context::Subject;
use stanchion_kernel::foreign::{Foreign, Served};

use super::farewell;
use super::findings::{Course, Findings, Obstacle};
use super::observe::{Observed, Seen};
use super::secrets;
use super::target::{Target, Wanted};
use crate::backends::kinds::{ELASTICSEARCH, PERCONA};
use crate::backends::{elasticsearch, percona, redis};
use crate::flux::{self, Chart};
use crate::values::{self, ChartVersion, Input};
use crate::versions;

/// What to do.
#[derive(Default)]
pub struct Plan {
    /// In this order.
    pub deeds: Vec<Deed>,
    /// What is then still in the way.
    pub obstacle: Option<Obstacle>,
}

/// One write.
pub enum Deed {
    /// A Secret.
    Secret(Intent),
    /// A `ConfigMap`.
    ConfigMap(Intent),
    /// An object of somebody else's kind.
    Foreign(ApiResource, Intent),
    /// The release; and the object that a predecessor made, whose fields become ours first.
    Release(ApiResource, Intent, Option<Box<DynamicObject>>),
    /// The release shall go.
    Uninstall(ApiResource, Box<DynamicObject>),
    /// A Secret shall go.
    RemoveSecret(Box<kube::core::ObjectMeta>),
}

/// Decides.
pub fn plan(target: &Target, observed: &Observed) -> Result<Plan, Problem> {
    match (target, observed) {
        (Target::Instance(wanted), Observed::Instance(seen)) => instance(wanted, seen),
        (Target::Leaving(leaving), Observed::Leaving(remains)) => Ok(farewell::plan(&leaving.name, remains)),
        _ => Ok(Plan::default()),
    }
}

fn instance(wanted: &Wanted, seen: &Seen) -> Result<Plan, Problem> {
    let findings = Findings::of(wanted, seen);
    let mut plan = Plan {
        obstacle: findings.before_ready().cloned(),
        ..Plan::default()
    };
    let (Some(subject), Ok(course), Ok(profile)) = (&seen.subject, &findings.course, &findings.profile)
    else {
        return Ok(plan);
    };
    let asking = wanted.asking(profile.as_ref());
    backends(&mut plan, wanted, seen, subject, &asking, course)?;
    if let Ok(Some(buckets)) = &findings.storage {
        for secret in secrets::objects(&wanted.name, buckets)? {
            let live = seen.secrets.get(name_of(&secret));
            let intent = Intent::new(&secret, subject)?;
            // A predecessor's has the same name and no owner.
            plan.deeds
                .extend(decide(intent, live, subject, Takeover::Adopt)?.map(Deed::Secret));
        }
    }
    if findings.before_release().is_some() {
        return Ok(plan);
    }
    // They are there, or there would be an obstacle.
    let (Some(repositories), Some(releases)) = (&seen.repository_kind, &seen.release_kind) else {
        return Ok(plan);
    };
    let repository = flux::helm_repository(&wanted.name, wanted.spec.helm.repository.as_ref(), repositories);
    let intent = decide(
        Intent::new(&repository, subject)?,
        seen.repository.as_ref(),
        subject,
        Takeover::Adopt,
    )?;
    let repository = intent.map(|intent| Deed::Foreign(repositories.resource.clone(), intent));
    plan.deeds.extend(repository);
    plan.deeds
        .extend(release(wanted, seen, subject, &findings, course, releases)?);
    Ok(plan)
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
        let init = Intent::to_keep(&percona::init(asking.instance), subject)?;
        let init = decide(init, seen.init.as_ref(), subject, Takeover::Adopt)?;
        plan.deeds.extend(init.map(Deed::ConfigMap));
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
            // The password of somebody else's Redis is not ours to make up.
            let is_theirs = objects
                .iter()
                .any(|(kind, _)| seen.backend(kind).is_somebody_elses());
            if let Some(password) = seen.password.as_ref().filter(|_| !is_theirs) {
                let auth = redis::auth(asking.instance, password);
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

/// The major version of the database: what it is stays, because a new one needs more than another number here.
fn postgres_version(seen: &Seen, asked: Option<u32>, course: &Course) -> u32 {
    percona::version(seen.backend(&PERCONA).object.as_ref())
        .or(asked)
        .unwrap_or_else(|| *versions::postgres(&course.now.version).end())
}

/// An object that outlives the instance. One that is there and was not made here is used as it is: it may be somebody's
/// database.
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
    let intent = Intent::to_keep(object, subject)?;
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
        .and_then(Clone::clone)
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
