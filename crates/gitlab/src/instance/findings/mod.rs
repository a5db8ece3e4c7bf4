//! Derives findings from what was read: for each dependency of an instance, how to use it or what blocks it. Pure; the
//! plan acts on the findings, the report shows them.

mod course;
mod ground;
mod postgres;
mod redis;
mod release;
mod rest;

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use stanchion_api::gitlab::{ChartRepository, ElasticsearchAddress, GitlabProfileSpec, Phase};
use stanchion_kernel::foreign::Foreign;
use stanchion_kernel::problem::Retry;
use stanchion_kernel::{Class, Problem};

pub use course::{ASKING, Course};
pub use release::Account;

use super::observe::Seen;
use super::target::Wanted;
use crate::backends::brought;
use crate::backends::kinds::PERCONA;
use crate::flux::Release;
use crate::login::{Mail, Psql, RedisLogin};
use crate::storage::Buckets;
use crate::values;

/// A usable dependency, or what blocks it.
pub type Finding<T> = Result<T, Obstacle>;

/// What blocks an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// The class of the problem, which decides who has to act.
    pub class: Class,
    /// The instance's phase while it is blocked.
    pub phase: Phase,
    /// The reason, one word.
    pub reason: &'static str,
    /// The message.
    pub message: String,
    /// When to retry, if nothing reports the end.
    pub again: Option<Duration>,
}

impl Obstacle {
    /// Something that the instance names does not exist yet.
    pub fn pending(reason: &'static str, message: impl Into<String>) -> Self {
        Self::new(Class::Dependency, Phase::Pending, reason, message)
    }

    /// Another operator is provisioning.
    pub fn provisioning(reason: &'static str, message: impl Into<String>) -> Self {
        Self::new(Class::Dependency, Phase::Provisioning, reason, message)
    }

    /// A person has to fix something; a watch reports it.
    pub fn failed(reason: &'static str, message: impl Into<String>) -> Self {
        Self::new(Class::Dependency, Phase::Failed, reason, message)
    }

    /// A person has to fix something outside of the instance, and no watch reports it.
    pub fn human(reason: &'static str, message: impl Into<String>) -> Self {
        Self::new(Class::Human, Phase::Failed, reason, message)
    }

    /// The operator for these kinds is not installed. There is no silent fallback.
    pub fn operator_missing(reason: &'static str, field: &str, kinds: &[&'static Foreign]) -> Self {
        let definitions: Vec<String> = kinds.iter().map(|kind| kind.definition()).collect();
        let message = format!(
            "{field}.managed needs an operator that is not installed: the cluster has no {}",
            definitions.join(", ")
        );
        Self::failed(reason, message)
    }

    fn new(class: Class, phase: Phase, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            class,
            phase,
            reason,
            message: message.into(),
            again: None,
        }
    }

    /// The obstacle as the error of a reconcile step.
    pub fn problem(&self) -> Problem {
        let problem = Problem::new(self.class, self.reason, self.message.clone());
        match self.again {
            Some(again) => problem.with_retry(Retry::After(again)),
            None => problem,
        }
    }
}

/// All findings about an instance.
pub struct Findings {
    /// The profile; `None` if the spec names none.
    pub profile: Finding<Option<GitlabProfileSpec>>,
    /// The version and its upgrade path.
    pub course: Finding<Course>,
    /// The database; `None` if the chart's values configure it.
    pub postgres: Finding<Option<Psql>>,
    /// Redis; `None` if the chart's values configure it.
    pub redis: Finding<Option<RedisLogin>>,
    /// Elasticsearch; `None` if it is not requested.
    pub elasticsearch: Finding<Option<ElasticsearchAddress>>,
    /// The buckets; `None` if the spec has none.
    pub storage: Finding<Option<Buckets>>,
    /// The mail server; `None` if the spec has none.
    pub mail: Finding<Option<Mail>>,
    /// The license, where one is needed.
    pub license: Finding<()>,
    /// Whether the existing release may be adopted.
    pub ours: Finding<()>,
    /// The chart repository.
    pub repository: Finding<ChartRepository>,
    /// The `ServiceAccount` that Flux installs with.
    pub account: Finding<Account>,
    /// Whether Flux is installed.
    pub flux: Finding<()>,
    /// Whether there is object storage, provided or from the chart.
    pub stored: Finding<()>,
    /// The state of the release.
    pub release: Option<Release>,
}

impl Findings {
    /// Derives all findings.
    pub fn of(wanted: &Wanted, seen: &Seen) -> Self {
        let ours = release::recognised(seen);
        let release = seen.release.as_ref().filter(|_| ours.is_ok()).map(Release::of);
        let profile = rest::profile(wanted, seen);
        let known = profile.as_ref().ok().and_then(Option::as_ref);
        let asking = wanted.asking(known.map(|profile| &profile.defaults));
        let postgres = postgres::find(wanted, seen, &asking);
        let course = course::find(wanted, seen, release.as_ref());
        Self {
            ours,
            repository: release::repository(wanted, seen, known),
            account: release::account(wanted, seen, known),
            flux: ground::flux(seen),
            stored: ground::stored(wanted, &course),
            course,
            redis: redis::find(wanted, seen, &asking),
            elasticsearch: rest::elasticsearch(wanted, seen),
            storage: rest::storage(wanted, seen),
            mail: rest::mail(wanted, seen),
            license: rest::license(wanted, seen),
            postgres,
            profile,
            release,
        }
    }

    /// What blocks everything: without these it is unknown what to create.
    pub fn before_backends(&self) -> Option<&Obstacle> {
        self.course.as_ref().err().or(self.profile.as_ref().err())
    }

    /// What blocks the release, in the order in which it is reported.
    pub fn before_release(&self) -> Option<&Obstacle> {
        self.before_backends()
            .or(self.ours.as_ref().err())
            .or(self.repository.as_ref().err())
            .or(self.account.as_ref().err())
            .or(self.postgres.as_ref().err())
            .or(self.redis.as_ref().err())
            .or(self.storage.as_ref().err())
            .or(self.mail.as_ref().err())
            .or(self.license.as_ref().err())
            .or(self.flux.as_ref().err())
            .or(self.stored.as_ref().err())
    }

    /// What keeps the instance from being ready, besides the release itself.
    pub fn before_ready(&self) -> Option<&Obstacle> {
        let held = self.course.as_ref().ok().and_then(|course| course.held.as_ref());
        self.before_release()
            .or(self.elasticsearch.as_ref().err())
            .or(held)
    }
}

/// A unique identifier of the instance's database. `None` while it is unknown.
pub fn database(wanted: &Wanted, seen: &Seen) -> Option<String> {
    let spec = &wanted.spec.postgres;
    if spec.managed {
        let cluster = seen.backend(&PERCONA).object.as_ref()?;
        return Some(format!("PerconaPGCluster/{}", cluster.metadata.uid.as_deref()?));
    }
    let Some(name) = &spec.credentials_secret else {
        return values::psql_host(&wanted.spec.helm.values).map(|host| format!("values/{host}"));
    };
    let psql = brought::psql(seen.secrets.get(name)?).ok()?;
    Some(format!(
        "{}:{}/{}",
        psql.address.host, psql.address.port, psql.database
    ))
}

/// A Secret that the spec names.
fn named<'a>(
    secrets: &'a BTreeMap<String, Secret>,
    name: &str,
    reason: &'static str,
    what: &str,
) -> Finding<&'a Secret> {
    secrets.get(name).ok_or_else(|| {
        Obstacle::pending(
            reason,
            format!("{what}: Secret {name} is not there yet; create it"),
        )
    })
}
