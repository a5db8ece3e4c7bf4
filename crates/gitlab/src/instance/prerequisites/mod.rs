//! Derives findings from what was read: for each dependency of an instance, how to use it or what blocks it. Pure; the
//! plan acts on the findings, the report shows them.

mod cluster;
mod postgres;
mod redis;
mod release;
mod secrets;
mod upgrade;

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use stanchion_api::gitlab::{ChartRepository, ElasticsearchAddress, GitlabProfileSpec, Phase};
use stanchion_kernel::external::ExternalKind;
use stanchion_kernel::problem::{Cause, Retry};
use stanchion_kernel::{Class, Problem};

pub use release::Account;
pub use upgrade::UpgradePlan;

use super::observe::Current;
use super::target::Wanted;
use crate::backends::external;
use crate::backends::kinds::PERCONA;
use crate::flux::Release;
use crate::login::{Mail, Psql, RedisLogin};
use crate::storage::Buckets;
use crate::values;

/// A usable dependency, or what blocks it.
pub type Check<T> = Result<T, Blocker>;

/// What blocks an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocker {
    /// The class of the problem, which decides who has to act.
    pub class: Class,
    /// The instance's phase while it is blocked.
    pub phase: Phase,
    /// The reason, one word.
    pub reason: &'static str,
    /// The message.
    pub message: String,
    /// When to retry, if nothing reports the end.
    pub requeue_after: Option<Duration>,
    /// Whether it waits for an answer of the database that nobody has asked for yet.
    pub needs_answer: bool,
}

impl Blocker {
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
    pub fn operator_missing(reason: &'static str, field: &str, kinds: &[&'static ExternalKind]) -> Self {
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
            requeue_after: None,
            needs_answer: false,
        }
    }

    /// The obstacle as the error of a reconcile step.
    pub fn problem(&self) -> Problem {
        let problem = Problem::new(self.class, self.reason, self.message.clone()).with_cause(Cause::Blocked);
        match self.requeue_after {
            Some(requeue_after) => problem.with_retry(Retry::After(requeue_after)),
            None => problem,
        }
    }
}

/// All findings about an instance.
pub struct Prerequisites {
    /// The profile; `None` if the spec names none.
    pub profile: Check<Option<GitlabProfileSpec>>,
    /// The version and its upgrade path.
    pub upgrade: Check<UpgradePlan>,
    /// The database; `None` if the chart's values configure it.
    pub postgres: Check<Option<Psql>>,
    /// Redis; `None` if the chart's values configure it.
    pub redis: Check<Option<RedisLogin>>,
    /// Elasticsearch; `None` if it is not requested.
    pub elasticsearch: Check<Option<ElasticsearchAddress>>,
    /// The buckets; `None` if the spec has none.
    pub storage: Check<Option<Buckets>>,
    /// The mail server; `None` if the spec has none.
    pub mail: Check<Option<Mail>>,
    /// The license, where one is needed.
    pub license: Check<()>,
    /// Whether the existing release may be adopted.
    pub ours: Check<()>,
    /// The chart repository.
    pub repository: Check<ChartRepository>,
    /// The `ServiceAccount` that Flux installs with.
    pub account: Check<Account>,
    /// Whether Flux is installed.
    pub flux: Check<()>,
    /// Whether there is object storage, provided or from the chart.
    pub stored: Check<()>,
    /// The state of the release.
    pub release: Option<Release>,
}

impl Prerequisites {
    /// Derives all findings.
    pub fn of(wanted: &Wanted, current: &Current) -> Self {
        let ours = release::recognised(current);
        let release = current.release.as_ref().filter(|_| ours.is_ok()).map(Release::of);
        let profile = secrets::profile(wanted, current);
        let known = profile.as_ref().ok().and_then(Option::as_ref);
        let requests = wanted.requests(known.map(|profile| &profile.defaults));
        let postgres = postgres::find(wanted, current, &requests);
        let upgrade = upgrade::find(wanted, current, release.as_ref());
        Self {
            ours,
            repository: release::repository(wanted, current, known),
            account: release::account(wanted, current, known),
            flux: cluster::flux(current),
            stored: cluster::stored(wanted, &upgrade),
            upgrade,
            redis: redis::find(wanted, current, &requests),
            elasticsearch: secrets::elasticsearch(wanted, current),
            storage: secrets::storage(wanted, current),
            mail: secrets::mail(wanted, current),
            license: secrets::license(wanted, current),
            postgres,
            profile,
            release,
        }
    }

    /// What blocks everything: without these it is unknown what to create.
    pub fn before_backends(&self) -> Option<&Blocker> {
        self.upgrade.as_ref().err().or(self.profile.as_ref().err())
    }

    /// What blocks the release, in the order in which it is reported.
    pub fn before_release(&self) -> Option<&Blocker> {
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
    pub fn before_ready(&self) -> Option<&Blocker> {
        let held = self
            .upgrade
            .as_ref()
            .ok()
            .and_then(|upgrade| upgrade.held.as_ref());
        self.before_release()
            .or(self.elasticsearch.as_ref().err())
            .or(held)
    }
}

/// A unique identifier of the instance's database. `None` while it is unknown.
pub fn database(wanted: &Wanted, current: &Current) -> Option<String> {
    let spec = &wanted.spec.postgres;
    if spec.managed {
        let cluster = current.backend(&PERCONA).object.as_ref()?;
        return Some(format!("PerconaPGCluster/{}", cluster.metadata.uid.as_deref()?));
    }
    let Some(name) = &spec.credentials_secret else {
        return values::psql_host(&wanted.spec.helm.values).map(|host| format!("values/{host}"));
    };
    let psql = external::psql(current.secrets.get(name)?).ok()?;
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
) -> Check<&'a Secret> {
    secrets.get(name).ok_or_else(|| {
        Blocker::pending(
            reason,
            format!("{what}: Secret {name} is not there yet; create it"),
        )
    })
}
