//! Derives from what was read, for each dependency of an instance, how to use it or what blocks it. Pure; `observe` does
//! it once a pass, the plan acts on it, and the report shows it.

mod backends;
mod release;
mod upgrade;

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use stanchion_api::gitlab::{
    ChartRepository, ElasticsearchAddress, GitlabProfileSpec, Phase, ProfileDefaults, Values,
};
use stanchion_kernel::external::ExternalKind;
use stanchion_kernel::problem::Retry;
use stanchion_kernel::{Class, Done, Problem};

pub(crate) use release::{Account, FluxKinds, ObjectStore};
pub(crate) use upgrade::UpgradePlan;

use super::observe::Current;
use super::target::Wanted;
use super::validate::INVALID;
use crate::backends::kinds::PERCONA;
use crate::flux::Release;
use crate::login::{Mail, Psql, RedisLogin};
use crate::storage::Buckets;
use crate::{names, record, values};

/// A usable dependency, or what blocks it.
pub(crate) type Check<T> = Result<T, Blocker>;

/// What blocks an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocker {
    /// The class of the problem, which decides who has to act.
    pub class: Class,
    /// The instance's phase while it is blocked.
    pub phase: Phase,
    /// The reason, one word.
    pub reason: &'static str,
    pub message: String,
    /// When to retry, if nothing reports the end.
    pub requeue_after: Option<Duration>,
}

impl Blocker {
    /// Something that the instance names does not exist yet.
    pub fn pending(reason: &'static str, message: impl Into<String>) -> Self {
        Self::new(Class::Dependency, Phase::Pending, reason, message)
    }

    /// Another operator is provisioning.
    pub(crate) fn provisioning(reason: &'static str, message: impl Into<String>) -> Self {
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
        }
    }

    /// The end of a step that did everything, but for what is blocked.
    pub fn done(blocker: Option<&Self>) -> Done {
        blocker.map_or(Done::Complete, |blocker| Done::Blocked(blocker.problem()))
    }

    fn problem(&self) -> Problem {
        let problem = Problem::new(self.class, self.reason, self.message.clone());
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
    /// Whether the name is short enough for what the profile requests.
    pub name: Check<()>,
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
    pub repository: Check<ChartRepository>,
    /// The `ServiceAccount` that Flux installs with.
    pub account: Check<Account>,
    pub flux: Check<FluxKinds>,
    /// The values of the profile, the version map and the spec, merged.
    pub written: Values,
    /// Where GitLab stores objects.
    pub stored: Check<ObjectStore>,
    /// The state of the release.
    pub release: Option<Release>,
}

/// What the backends are made from.
pub(crate) struct BackendInputs<'a> {
    /// The version and its upgrade path.
    pub upgrade: &'a UpgradePlan,
    pub profile: Option<&'a GitlabProfileSpec>,
}

/// What the release is made from.
pub(crate) struct ReleaseInputs<'a> {
    /// The version and its upgrade path.
    pub upgrade: &'a UpgradePlan,
    pub profile: Option<&'a GitlabProfileSpec>,
    pub repository: &'a ChartRepository,
    /// The `ServiceAccount` that Flux installs with.
    pub account: &'a Account,
    /// The database.
    pub postgres: Option<&'a Psql>,
    pub redis: Option<&'a RedisLogin>,
    pub storage: Option<&'a Buckets>,
    /// The mail server.
    pub mail: Option<&'a Mail>,
    pub flux: &'a FluxKinds,
}

impl Prerequisites {
    /// Derives everything. The database has not been asked.
    pub fn of(wanted: &Wanted, current: &Current) -> Self {
        let ours = release::recognised(current);
        let release = current.flux.release.as_ref().filter(|_| ours.is_ok());
        let release = release.map(Release::of);
        let profile = release::profile(wanted, current);
        let known = profile.as_ref().ok().and_then(Option::as_ref);
        let defaults = known.map(|profile| &profile.defaults);
        let requests = wanted.requests(defaults);
        let upgrade = upgrade::find(wanted, current, release.as_ref());
        let written = written(wanted, defaults, &upgrade);
        Self {
            ours,
            repository: release::repository(wanted, current, known),
            account: release::account(wanted, current, known),
            flux: release::flux(current),
            stored: release::stored(wanted, &written, &upgrade),
            upgrade,
            postgres: backends::postgres(wanted, current, &requests),
            redis: backends::redis(wanted, current, &requests),
            elasticsearch: backends::elasticsearch(wanted, current),
            storage: backends::storage(wanted, current, defaults, &written),
            written,
            mail: backends::mail(wanted, current),
            license: release::license(wanted, current),
            name: names::too_long(wanted, defaults)
                .map_or(Ok(()), |words| Err(Blocker::failed(INVALID, words))),
            profile,
            release,
        }
    }

    /// Decides about the upgrade again, with the database's answer.
    #[must_use]
    pub(crate) fn with_answer(self, wanted: &Wanted, current: &Current) -> Self {
        let upgrade = upgrade::find(wanted, current, self.release.as_ref());
        let profile = self.profile.as_ref().ok().and_then(Option::as_ref);
        let defaults = profile.map(|profile| &profile.defaults);
        let written = written(wanted, defaults, &upgrade);
        Self {
            stored: release::stored(wanted, &written, &upgrade),
            storage: backends::storage(wanted, current, defaults, &written),
            written,
            upgrade,
            ..self
        }
    }

    /// What the backends are made from; or what blocks everything, because it is unknown what to create.
    pub(crate) fn for_backends(&self) -> Result<BackendInputs<'_>, &Blocker> {
        let (upgrade, profile) = (self.upgrade.as_ref()?, self.profile.as_ref()?);
        self.name.as_ref()?;
        Ok(BackendInputs {
            upgrade,
            profile: profile.as_ref(),
        })
    }

    /// What the release is made from; or what blocks it. The first of several blockers is reported.
    pub(crate) fn for_release(&self) -> Result<ReleaseInputs<'_>, &Blocker> {
        let BackendInputs { upgrade, profile } = self.for_backends()?;
        self.ours.as_ref()?;
        let (repository, account) = (self.repository.as_ref()?, self.account.as_ref()?);
        let (postgres, redis) = (self.postgres.as_ref()?, self.redis.as_ref()?);
        let (storage, mail) = (self.storage.as_ref()?, self.mail.as_ref()?);
        self.license.as_ref()?;
        let flux = self.flux.as_ref()?;
        self.stored.as_ref()?;
        Ok(ReleaseInputs {
            upgrade,
            profile,
            repository,
            account,
            postgres: postgres.as_ref(),
            redis: redis.as_ref(),
            storage: storage.as_ref(),
            mail: mail.as_ref(),
            flux,
        })
    }

    /// Why the next step of an upgrade is not taken yet.
    pub fn held(&self) -> Option<&Blocker> {
        let upgrade = self.upgrade.as_ref().ok()?;
        upgrade.held.as_ref().map(|held| &held.blocker)
    }

    /// What the instance lacks, whatever its release does.
    pub(crate) fn unmet(&self) -> Option<&Blocker> {
        self.for_release().err().or(self.elasticsearch.as_ref().err())
    }

    /// What keeps the instance from being ready, besides the release itself.
    pub(crate) fn before_ready(&self) -> Option<&Blocker> {
        self.unmet().or(self.held())
    }
}

/// The values of the profile, the version map for the present step, and the spec, merged.
fn written(wanted: &Wanted, profile: Option<&ProfileDefaults>, upgrade: &Check<UpgradePlan>) -> Values {
    let step = upgrade.as_ref().ok().map(|upgrade| &upgrade.now.values);
    values::written(profile, step, &wanted.spec.helm.values)
}

/// A unique identifier of the instance's database. `None` while it is unknown.
pub(crate) fn database(wanted: &Wanted, current: &Current) -> Option<String> {
    let secret = wanted.spec.postgres.credentials_secret.as_ref();
    let secret = secret.and_then(|name| current.secrets.get(name));
    record::database(
        &wanted.spec,
        current.backends.of(&PERCONA).object.as_ref(),
        secret,
    )
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
            format!("{what}: Secret {name} does not exist yet; create it"),
        )
    })
}
