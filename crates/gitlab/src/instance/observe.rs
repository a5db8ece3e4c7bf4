//! What is there. Reads only.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use futures::future::try_join_all;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::core::DynamicObject;
use secrecy::SecretString;
use stanchion_api::gitlab::{DEFAULT_MAP, GitlabProfileSpec, GitlabVersionMapSpec};
use stanchion_api::{GitlabProfile, GitlabVersionMap};
use stanchion_kernel::apply::is_owned;
use stanchion_kernel::context::Subject;
use stanchion_kernel::foreign::{Foreign, Served};
use stanchion_kernel::watch::MANAGED_BY;
use stanchion_kernel::{Problem, Reader};

use super::database::{self, Answer};
use super::findings::{ASKING, Findings};
use super::marks;
use super::secrets as made;
use super::target::{Leaving, Target, Wanted};
use crate::Setup;
use crate::account;
use crate::backends::kinds::{ELASTICSEARCH, PERCONA};
use crate::backends::{elasticsearch, percona, redis};
use crate::charts::Tenants;
use crate::flux::{self, HELM_RELEASE, HELM_REPOSITORY};
use crate::values::Checksums;

/// What was read.
pub enum Observed {
    /// For an instance that shall be there.
    Instance(Box<Seen>),
    /// For one that goes.
    Leaving(Box<Remains>),
    /// Nothing was looked at.
    Nothing,
}

/// What there is of an instance.
#[derive(Clone, Default)]
pub struct Seen {
    /// The instance, as writes know it.
    pub subject: Option<Subject>,
    /// Which chart installs which version.
    pub map: Option<GitlabVersionMapSpec>,
    /// The profile, if one is named and there.
    pub profile: Option<GitlabProfileSpec>,
    /// What tenants may do.
    pub tenants: Arc<Tenants>,
    /// The account that is made for the instance.
    pub account: account::Found,
    /// Whether the account that the profile names is there.
    pub given_account: bool,
    /// The Secrets that are named or made, as far as they are there.
    pub secrets: BTreeMap<String, Secret>,
    /// What the database is told first.
    pub init: Option<ConfigMap>,
    /// What comes of the Redis.
    pub stateful_sets: BTreeMap<String, StatefulSet>,
    /// What other operators are told.
    pub backends: HashMap<&'static Foreign, Backend>,
    /// How Flux is told where charts are.
    pub repository_kind: Option<Served>,
    /// How Flux is told what to install.
    pub release_kind: Option<Served>,
    /// Where charts are.
    pub repository: Option<DynamicObject>,
    /// What is installed.
    pub release: Option<DynamicObject>,
    /// What the database said, where it was asked.
    pub database: Option<Result<Answer, String>>,
    /// A password for a managed Redis that has none yet.
    pub password: Option<SecretString>,
    /// What shows that a Secret has changed, without showing it.
    pub checksums: Checksums,
}

/// What another operator is told.
#[derive(Clone, Default)]
pub struct Backend {
    /// How the cluster serves the kind, if it does.
    pub served: Option<Served>,
    /// The object.
    pub object: Option<DynamicObject>,
}

/// What there is of an instance that goes.
pub struct Remains {
    /// How Flux is told what to install, and what it was told.
    pub release: Option<(Served, DynamicObject)>,
    /// The Secrets that were made for it.
    pub secrets: Vec<Secret>,
    /// The account that was made for it.
    pub account: account::Found,
    /// The instance, as writes know it.
    pub subject: Subject,
}

impl Backend {
    /// Whether it is there and was not made here: it may be somebody's database.
    pub fn is_somebody_elses(&self) -> bool {
        let Some(object) = &self.object else { return false };
        let labels = object.metadata.labels.as_ref();
        let made_by = labels.and_then(|labels| labels.get(MANAGED_BY.0));
        made_by.map(String::as_str) != Some(MANAGED_BY.1)
    }
}

impl Seen {
    /// What another operator is told, and whether it is there at all.
    pub fn backend(&self, kind: &'static Foreign) -> &Backend {
        const NONE: &Backend = &Backend {
            served: None,
            object: None,
        };
        self.backends.get(kind).unwrap_or(NONE)
    }
}

/// Reads everything that the plan needs.
pub async fn observe(setup: &Setup, read: &Reader, target: &Target) -> Result<Observed, Problem> {
    match target {
        Target::Instance(wanted) => {
            let seen = Box::pin(instance(setup, read, wanted)).await?;
            Ok(Observed::Instance(Box::new(seen)))
        }
        Target::Leaving(leaving) => {
            let remains = remains(read, leaving).await?;
            Ok(Observed::Leaving(Box::new(remains)))
        }
        Target::Suspended => Ok(Observed::Nothing),
    }
}

async fn instance(setup: &Setup, read: &Reader, wanted: &Wanted) -> Result<Seen, Problem> {
    let spec = &wanted.spec;
    let map = async {
        let map: Option<GitlabVersionMap> = read.get_cluster_wide(DEFAULT_MAP).await?;
        Ok::<_, Problem>(map.map(|map| map.spec))
    };
    let profile = async {
        let Some(name) = &spec.profile else {
            return Ok(None);
        };
        let profile: Option<GitlabProfile> = read.get_cluster_wide(name).await?;
        Ok::<_, Problem>(profile.map(|profile| profile.spec))
    };
    let init = async {
        if !spec.postgres.managed {
            return Ok(None);
        }
        read.get::<ConfigMap>(&percona::init_name(&wanted.name)).await
    };
    let (map, profile, secrets, init, flux, account) = tokio::try_join!(
        map,
        profile,
        secrets(read, wanted),
        init,
        flux(read, wanted),
        own_account(read, &wanted.name)
    )?;
    let given = profile
        .as_ref()
        .and_then(|profile| profile.release.service_account_name.as_ref());
    let given_account = match given {
        Some(name) => read.get::<ServiceAccount>(name).await?.is_some(),
        None => false,
    };
    let (repository_kind, release_kind, repository, release) = flux;
    let lacks_password = spec.redis.managed && !secrets.contains_key(&redis::auth_name(&wanted.name));
    let password = lacks_password.then(marks::password).transpose()?;
    let mut seen = Seen {
        subject: Some(read.subject().clone()),
        checksums: marks::checksums(&setup.fingerprints, &read.subject().uid, wanted, &secrets),
        tenants: Arc::clone(&setup.tenants),
        account,
        given_account,
        map,
        profile,
        secrets,
        init,
        repository_kind,
        release_kind,
        repository,
        release,
        password,
        ..Seen::default()
    };
    backends(read, wanted, &mut seen).await?;
    seen.database = ask(setup, wanted, &seen).await;
    Ok(seen)
}

/// The Secrets that the instance names, those that other operators make for it, and those that are made here.
async fn secrets(read: &Reader, wanted: &Wanted) -> Result<BTreeMap<String, Secret>, Problem> {
    let (spec, name) = (&wanted.spec, wanted.name.as_str());
    let mut names: BTreeSet<String> = [
        spec.license_secret.clone(),
        wanted.postgres_secret(),
        wanted.redis_secret(),
        spec.object_storage.credentials_secret.clone(),
        spec.smtp.credentials_secret.clone(),
    ]
    .into_iter()
    .flatten()
    .filter(|name| !name.is_empty())
    .collect();
    if spec.object_storage.credentials_secret.is_some() {
        names.extend(made::names(name));
    }
    let found = try_join_all(names.into_iter().map(async |name| {
        let secret: Option<Secret> = read.get(&name).await?;
        Ok::<_, Problem>(secret.map(|secret| (name, secret)))
    }))
    .await?;
    Ok(found.into_iter().flatten().collect())
}

/// The account that is made for an instance.
async fn own_account(read: &Reader, instance: &str) -> Result<account::Found, Problem> {
    let name = account::name(instance);
    let (account, binding) =
        tokio::try_join!(read.get::<ServiceAccount>(&name), read.get::<RoleBinding>(&name))?;
    Ok(account::Found { account, binding })
}

type Flux = (
    Option<Served>,
    Option<Served>,
    Option<DynamicObject>,
    Option<DynamicObject>,
);

async fn flux(read: &Reader, wanted: &Wanted) -> Result<Flux, Problem> {
    let (repositories, releases) =
        tokio::try_join!(read.served(&HELM_REPOSITORY), read.served(&HELM_RELEASE))?;
    let name = flux::name(&wanted.name);
    let repository = match &repositories {
        Some(kind) => read.get_foreign(&kind.resource, &name).await?,
        None => None,
    };
    let release = match &releases {
        Some(kind) => release(read, kind, &name).await?,
        None => None,
    };
    Ok((repositories, releases, repository, release))
}

/// The instance's release: under the name that we give it, or whichever a predecessor made for it.
async fn release(read: &Reader, kind: &Served, name: &str) -> Result<Option<DynamicObject>, Problem> {
    if let Some(found) = read.get_foreign(&kind.resource, name).await? {
        return Ok(Some(found));
    }
    let all = read.list_foreign(&kind.resource).await?;
    let ours = all
        .into_iter()
        .find(|release| is_owned(&release.metadata, read.subject()));
    Ok(ours)
}

/// What is, or shall be, run by other operators.
async fn backends(read: &Reader, wanted: &Wanted, seen: &mut Seen) -> Result<(), Problem> {
    let name = wanted.name.as_str();
    let mut objects: Vec<(&'static Foreign, String)> = Vec::new();
    let defaults = seen.profile.as_ref().map(|profile| &profile.defaults);
    let topology = wanted.asking(defaults).redis().topology;
    if wanted.spec.postgres.managed {
        objects.push((&PERCONA, percona::name(name)));
    }
    if wanted.spec.redis.managed {
        objects.extend(
            redis::kinds(topology)
                .iter()
                .map(|kind| (*kind, redis::name(name))),
        );
    }
    if wanted.needs_elasticsearch() {
        objects.push((&ELASTICSEARCH, elasticsearch::name(name)));
    }
    let found = try_join_all(objects.into_iter().map(async |(kind, name)| {
        let served = read.served(kind).await?;
        let object = match &served {
            Some(served) => read.get_foreign(&served.resource, &name).await?,
            None => None,
        };
        Ok::<_, Problem>((kind, Backend { served, object }))
    }))
    .await?;
    seen.backends = found.into_iter().collect();
    if wanted.spec.redis.managed {
        let names = redis::stateful_sets(name, topology);
        let sets = try_join_all(names.into_iter().map(async |name| {
            let set: Option<StatefulSet> = read.get(&name).await?;
            Ok::<_, Problem>(set.map(|set| (name, set)))
        }))
        .await?;
        seen.stateful_sets = sets.into_iter().flatten().collect();
    }
    Ok(())
}

/// Asks the database, where an answer decides something: before a brought one is used for the first time, and before an
/// upgrade goes on.
async fn ask(setup: &Setup, wanted: &Wanted, seen: &Seen) -> Option<Result<Answer, String>> {
    let findings = Findings::of(wanted, seen);
    let course = findings.course.as_ref().ok()?;
    let is_first = seen.release.is_none() && wanted.spec.postgres.credentials_secret.is_some();
    let is_next = course.held.as_ref().is_some_and(|held| held.reason == ASKING);
    if !is_first && !is_next {
        return None;
    }
    let Some(psql) = findings.postgres.as_ref().ok()? else {
        return Some(Err("only helm.values say where the database is".into()));
    };
    let secret = seen.secrets.get(&psql.password.secret)?;
    Some(database::ask(&setup.pools, psql, secret).await)
}

async fn remains(read: &Reader, leaving: &Leaving) -> Result<Remains, Problem> {
    let release = match read.served(&HELM_RELEASE).await? {
        Some(kind) => release(read, &kind, &flux::name(&leaving.name))
            .await?
            .filter(|release| is_owned(&release.metadata, read.subject()))
            .map(|release| (kind, release)),
        None => None,
    };
    let secrets = try_join_all(
        leaving
            .secrets
            .iter()
            .map(async |name| read.get::<Secret>(name).await),
    )
    .await?;
    Ok(Remains {
        release,
        secrets: secrets.into_iter().flatten().collect(),
        account: own_account(read, &leaving.name).await?,
        subject: read.subject().clone(),
    })
}
