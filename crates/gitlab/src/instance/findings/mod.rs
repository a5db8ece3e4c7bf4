//! What follows from what was read: of each thing that an instance stands on, either how it is used or what is in the
//! way. Pure; the plan acts on it, the report tells it.

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

/// What can be used, or what is in the way.
pub type Finding<T> = Result<T, Obstacle>;

/// Something in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// Who has to move.
    pub class: Class,
    /// The instance's phase meanwhile.
    pub phase: Phase,
    /// In one word.
    pub reason: &'static str,
    /// In a sentence.
    pub message: String,
    /// When to look again, where nothing tells that it is gone.
    pub again: Option<Duration>,
}

impl Obstacle {
    /// Something that the instance names is not there yet.
    pub fn pending(reason: &'static str, message: impl Into<String>) -> Self {
        Self::new(Class::Dependency, Phase::Pending, reason, message)
    }

    /// Another operator is at work.
    pub fn provisioning(reason: &'static str, message: impl Into<String>) -> Self {
        Self::new(Class::Dependency, Phase::Provisioning, reason, message)
    }

    /// Somebody has to mend something; it is noticed when they have.
    pub fn failed(reason: &'static str, message: impl Into<String>) -> Self {
        Self::new(Class::Dependency, Phase::Failed, reason, message)
    }

    /// Somebody has to mend something outside of the instance, and nothing tells that they have.
    pub fn human(reason: &'static str, message: impl Into<String>) -> Self {
        Self::new(Class::Human, Phase::Failed, reason, message)
    }

    /// Nobody in the cluster knows what to do with these kinds. Nothing else is used instead without a word.
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

    /// As what a step of a reconcile fails with.
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
    /// The profile; none where none is named.
    pub profile: Finding<Option<GitlabProfileSpec>>,
    /// Which version, by which way.
    pub course: Finding<Course>,
    /// The database; `None` where the chart's values say where it is.
    pub postgres: Finding<Option<Psql>>,
    /// Redis, likewise.
    pub redis: Finding<Option<RedisLogin>>,
    /// Elasticsearch; `None` where none is asked for.
    pub elasticsearch: Finding<Option<ElasticsearchAddress>>,
    /// The buckets; `None` where none are given.
    pub storage: Finding<Option<Buckets>>,
    /// The mail server; `None` where none is given.
    pub mail: Finding<Option<Mail>>,
    /// The license, where one is needed.
    pub license: Finding<()>,
    /// Whether the release that is there may be taken over.
    pub ours: Finding<()>,
    /// Where the chart comes from.
    pub repository: Finding<ChartRepository>,
    /// As whom Flux installs it.
    pub account: Finding<Account>,
    /// Whether Flux is there.
    pub flux: Finding<()>,
    /// Whether there is any storage, given or brought by the chart.
    pub stored: Finding<()>,
    /// What Flux says.
    pub release: Option<Release>,
}

impl Findings {
    /// What follows from what was read.
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

    /// What keeps anything from being made at all: without these nobody knows what to make.
    pub fn before_backends(&self) -> Option<&Obstacle> {
        self.course.as_ref().err().or(self.profile.as_ref().err())
    }

    /// What keeps the release from being made or changed, in the order in which people expect to be told.
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

    /// What keeps the instance from being ready, beside the release itself.
    pub fn before_ready(&self) -> Option<&Obstacle> {
        let held = self.course.as_ref().ok().and_then(|course| course.held.as_ref());
        self.before_release()
            .or(self.elasticsearch.as_ref().err())
            .or(held)
    }
}

/// Which database an instance has, in words that no other has. `None` while that is not known.
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

/// A Secret that somebody named.
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
