//! Reads the state of an instance. Reads only.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use futures::future::try_join_all;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::core::{DynamicObject, ObjectMeta};
use secrecy::SecretString;
use stanchion_api::gitlab::patterns::is_name;
use stanchion_api::gitlab::{DEFAULT_MAP, GitlabProfileSpec, GitlabVersionMapSpec};
use stanchion_api::{GitlabProfile, GitlabVersionMap};
use stanchion_kernel::ambient;
use stanchion_kernel::apply::is_owned;
use stanchion_kernel::context::Parent;
use stanchion_kernel::external::{ExternalKind, ServedKind};
use stanchion_kernel::watch::MANAGED_BY;
use stanchion_kernel::{Problem, Reader};

use super::cache::{Cached, InstanceCache, Shapes};
use super::database::{self, Answer};
use super::prerequisites::Prerequisites;
use super::secret_values;
use super::secrets as made;
use super::target::{CleanupTarget, Target, Wanted};
use crate::Setup;
use crate::account;
use crate::backends::kinds::{ELASTICSEARCH, PERCONA, REDIS, REDIS_REPLICATION, REDIS_SENTINEL};
use crate::backends::{elasticsearch, percona, redis};
use crate::charts::Tenants;
use crate::flux::{self, HELM_RELEASE, HELM_REPOSITORY, Release};
use crate::helm::{self, Deployed, Unreadable};
use crate::record;
use crate::values::Checksums;

/// The observed state.
pub enum Observed {
    /// Of an instance that is not being deleted.
    Ensure(Box<Current>),
    /// Of a deleted instance.
    Cleanup(Box<CleanupState>),
    /// Nothing was read.
    Nothing,
}

/// The state of an instance.
#[derive(Clone, Default)]
pub struct Current {
    /// The instance as the owner of writes.
    pub parent: Option<Parent>,
    /// The version map.
    pub map: Option<GitlabVersionMapSpec>,
    /// The profile, if one is named and exists.
    pub profile: Option<GitlabProfileSpec>,
    /// The permissions of tenants.
    pub tenants: Arc<Tenants>,
    /// The `ServiceAccount` that the operator creates.
    pub account: account::Found,
    /// Whether the `ServiceAccount` that the profile names exists.
    pub given_account: bool,
    /// The existing Secrets that the spec names or the operator creates.
    pub secrets: BTreeMap<String, Secret>,
    /// Whether the storage is unchanged since its derived Secrets were up to date. The Secrets are then only shapes.
    pub storage_resolved: bool,
    /// The initial statements of the database.
    pub init: Option<ConfigMap>,
    /// The `StatefulSets` of the Redis.
    pub stateful_sets: BTreeMap<String, StatefulSet>,
    /// The objects of other operators.
    pub backends: HashMap<&'static ExternalKind, Backend>,
    /// The served version of Flux's repositories.
    pub repository_kind: Option<ServedKind>,
    /// The served version of Flux's releases.
    pub release_kind: Option<ServedKind>,
    /// The release that Helm itself deployed, if Flux has none; or why it cannot be read.
    pub helm: Option<Result<Deployed, Unreadable>>,
    /// The record of the last version.
    pub record: Option<ConfigMap>,
    /// The chart repository.
    pub repository: Option<DynamicObject>,
    /// The release.
    pub release: Option<DynamicObject>,
    /// The database's answer, if it was queried.
    pub database: Option<Result<Answer, String>>,
    /// A generated password for a managed Redis that has none yet.
    pub password: Option<SecretString>,
    /// Fingerprints that show changes of Secrets without revealing them.
    pub checksums: Checksums,
}

/// An object of another operator.
#[derive(Clone, Default)]
pub struct Backend {
    /// The served version of the kind, if the cluster serves it.
    pub served: Option<ServedKind>,
    /// The object.
    pub object: Option<DynamicObject>,
}

/// The state of a deleted instance.
pub struct CleanupState {
    /// The release and its served version.
    pub release: Option<(ServedKind, DynamicObject)>,
    /// The derived Secrets.
    pub secrets: Vec<Secret>,
    /// The `ServiceAccount` that the operator created.
    pub account: account::Found,
    /// Objects of other operators, which stay: each with its kind and name. Filled only once the release is gone.
    pub retained: Vec<String>,
    /// The instance as the owner of writes.
    pub parent: Parent,
}

impl Backend {
    /// Whether it exists and the operator did not create it: it may be somebody's database.
    pub fn is_somebody_elses(&self) -> bool {
        let object = self.object.as_ref();
        object.is_some_and(|object| !is_made_here(&object.metadata))
    }
}

/// Whether the operator created it.
pub fn is_made_here(meta: &ObjectMeta) -> bool {
    let label = meta.labels.as_ref().and_then(|labels| labels.get(MANAGED_BY.0));
    label.map(String::as_str) == Some(MANAGED_BY.1)
}

impl Current {
    /// The object of another operator, and whether its kind is served.
    pub fn backend(&self, kind: &'static ExternalKind) -> &Backend {
        const NONE: &Backend = &Backend {
            served: None,
            object: None,
        };
        self.backends.get(kind).unwrap_or(NONE)
    }
}

/// Reads everything that the plan needs.
pub async fn observe(
    setup: &Setup,
    cache: &InstanceCache,
    read: &Reader,
    target: &Target,
) -> Result<Observed, Problem> {
    match target {
        Target::Ensure(wanted) => {
            let cached = cache.recall(&read.parent().uid);
            let current = Box::pin(instance(setup, cached.as_deref(), read, wanted)).await?;
            Ok(Observed::Ensure(Box::new(current)))
        }
        Target::Cleanup(cleanup) => {
            cache.forget(&read.parent().uid);
            let state = state(read, cleanup).await?;
            Ok(Observed::Cleanup(Box::new(state)))
        }
        Target::Suspended => Ok(Observed::Nothing),
    }
}

async fn instance(
    setup: &Setup,
    cached: Option<&Cached>,
    read: &Reader,
    wanted: &Wanted,
) -> Result<Current, Problem> {
    let spec = &wanted.spec;
    let map = async {
        if read.is_unchanged_cluster_wide::<GitlabVersionMap>(DEFAULT_MAP)
            && let Some(cached) = cached
        {
            return Ok(cached.map.clone());
        }
        let map: Option<GitlabVersionMap> = read.get_cluster_wide(DEFAULT_MAP).await?;
        Ok::<_, Problem>(map.map(|map| map.spec))
    };
    let profile = async {
        let Some(name) = &spec.profile else {
            return Ok(None);
        };
        if read.is_unchanged_cluster_wide::<GitlabProfile>(name)
            && let Some(cached) = cached
        {
            return Ok(cached.profile.clone());
        }
        let profile: Option<GitlabProfile> = read.get_cluster_wide(name).await?;
        Ok::<_, Problem>(profile.map(|profile| profile.spec))
    };
    let init = async {
        if !spec.postgres.managed {
            return Ok(None);
        }
        config_map(
            read,
            &percona::init_name(&wanted.name),
            cached.map(|cached| &cached.init),
        )
        .await
    };
    let record_name = record::name(&wanted.name);
    let (map, profile, secrets, init, flux, account, record) = tokio::try_join!(
        map,
        profile,
        secrets(setup, cached, read, wanted),
        init,
        flux(read, cached, wanted),
        own_account(read, cached.map(|cached| &cached.account), &wanted.name),
        config_map(read, &record_name, cached.map(|cached| &cached.record))
    )?;
    let (
        Shapes {
            secrets, checksums, ..
        },
        storage_resolved,
    ) = secrets;
    let given = profile
        .as_ref()
        .and_then(|profile| profile.release.service_account_name.as_ref());
    let given_account = match given {
        Some(name) => read.get::<ServiceAccount>(name).await?.is_some(),
        None => false,
    };
    let (repository_kind, release_kind, repository, release) = flux;
    let lacks_password = spec.redis.managed && !secrets.contains_key(&redis::auth_name(&wanted.name));
    let password = lacks_password.then(secret_values::password).transpose()?;
    let mut current = Current {
        parent: Some(read.parent().clone()),
        checksums,
        storage_resolved,
        tenants: Arc::clone(&setup.tenants),
        account,
        given_account,
        record,
        helm: None,
        map,
        profile,
        secrets,
        init,
        repository_kind,
        release_kind,
        repository,
        release,
        password,
        ..Current::default()
    };
    current.helm = predecessor(read, wanted, current.release.as_ref()).await?;
    backends(read, wanted, &mut current).await?;
    current.database = ask(setup, read, wanted, &current).await?;
    Ok(current)
}

/// The Secrets that the instance names, those that other operators create for it, and those that are derived here.
///
/// If none of them has changed since everything derived from them was up to date, only their shapes are known.
async fn secrets(
    setup: &Setup,
    cached: Option<&Cached>,
    read: &Reader,
    wanted: &Wanted,
) -> Result<(Shapes, bool), Problem> {
    let mentioned = wanted.named_secrets();
    let mut names: BTreeSet<String> = mentioned
        .iter()
        .flatten()
        .filter(|name| !name.is_empty())
        .cloned()
        .collect();
    // The Secrets of a storage that is no longer named exist until nothing reads them.
    let made = made::names(&wanted.name);
    let has_storage = wanted.spec.object_storage.credentials_secret.is_some();
    names.extend(
        made.into_iter()
            .filter(|name| has_storage || wanted.secrets.contains(name)),
    );
    // Check each one, so that each stays registered as a dependency.
    let changed = names
        .iter()
        .filter(|name| !read.is_unchanged::<Secret>(name))
        .count();
    let cached = cached.and_then(|cached| cached.secrets.as_ref());
    if let (Some(shapes), 0) = (cached.filter(|cached| cached.named == mentioned), changed) {
        return Ok((shapes.clone(), true));
    }
    let found = try_join_all(names.into_iter().map(async |name| {
        let secret: Option<Secret> = read.get(&name).await?;
        Ok::<_, Problem>(secret.map(|secret| (name, secret)))
    }))
    .await?;
    let secrets = found.into_iter().flatten().collect();
    let checksums = secret_values::checksums(&setup.fingerprints, &read.parent().uid, wanted, &secrets);
    let read = Shapes {
        named: mentioned,
        secrets,
        checksums,
    };
    Ok((read, false))
}

/// A `ConfigMap`, read only if it has changed.
async fn config_map(
    read: &Reader,
    name: &str,
    cached: Option<&Option<ConfigMap>>,
) -> Result<Option<ConfigMap>, Problem> {
    if read.is_unchanged::<ConfigMap>(name)
        && let Some(cached) = cached
    {
        return Ok(cached.clone());
    }
    read.get(name).await
}

/// The `ServiceAccount` that the operator creates for an instance.
async fn own_account(
    read: &Reader,
    cached: Option<&account::Found>,
    instance: &str,
) -> Result<account::Found, Problem> {
    let name = account::name(instance);
    let unchanged = [
        read.is_unchanged::<ServiceAccount>(&name),
        read.is_unchanged::<RoleBinding>(&name),
    ];
    if unchanged == [true, true]
        && let Some(cached) = cached
    {
        return Ok(cached.clone());
    }
    let (account, binding) =
        tokio::try_join!(read.get::<ServiceAccount>(&name), read.get::<RoleBinding>(&name))?;
    Ok(account::Found { account, binding })
}

type Flux = (
    Option<ServedKind>,
    Option<ServedKind>,
    Option<DynamicObject>,
    Option<DynamicObject>,
);

async fn flux(read: &Reader, cached: Option<&Cached>, wanted: &Wanted) -> Result<Flux, Problem> {
    let (repositories, releases) =
        tokio::try_join!(read.served(&HELM_REPOSITORY), read.served(&HELM_RELEASE))?;
    let name = flux::name(&wanted.name);
    let repository = match &repositories {
        Some(kind) => match cached.filter(|_| read.is_external_unchanged(&kind.resource, &name)) {
            Some(cached) => cached.repository.clone(),
            None => read.get_external(&kind.resource, &name).await?,
        },
        None => None,
    };
    let release = match &releases {
        Some(kind) => release(read, kind, &name).await?,
        None => None,
    };
    Ok((repositories, releases, repository, release))
}

/// The instance's release: under the operator's name for it, or under any name that a predecessor gave it.
async fn release(read: &Reader, kind: &ServedKind, name: &str) -> Result<Option<DynamicObject>, Problem> {
    if let Some(found) = read.get_external(&kind.resource, name).await? {
        return Ok(Some(found));
    }
    let all = read.list_external(&kind.resource).await?;
    let ours = all
        .into_iter()
        .find(|release| is_owned(&release.metadata, read.parent()));
    Ok(ours)
}

/// The release that Helm itself deployed under this name. Read only before any version is known to run: from then on
/// Flux reports it.
async fn predecessor(
    read: &Reader,
    wanted: &Wanted,
    release: Option<&DynamicObject>,
) -> Result<Option<Result<Deployed, Unreadable>>, Problem> {
    /// The most revisions that are read; more than one deployed revision is not genuine.
    const REVISIONS: u32 = 16;
    let release = release.map(Release::of);
    let is_known = release.as_ref().is_some_and(|release| release.running.is_some());
    if is_known || wanted.installed.is_some() {
        return Ok(None);
    }
    let name = release
        .and_then(|release| release.name)
        .filter(|name| is_name(name))
        .unwrap_or_else(|| wanted.name.clone());
    let revisions = read
        .list_metadata::<Secret>(&helm::selector(&name), REVISIONS)
        .await?;
    let Some(newest) = helm::newest(revisions) else {
        return Ok(None);
    };
    let Some(secret) = read.get::<Secret>(&newest).await? else {
        return Ok(None);
    };
    let found = ambient::blocking(move || helm::read(&secret)).await;
    Ok(Some(found.unwrap_or(Err(Unreadable::Malformed))))
}

/// The objects that other operators run, or will run.
async fn backends(read: &Reader, wanted: &Wanted, current: &mut Current) -> Result<(), Problem> {
    let name = wanted.name.as_str();
    let mut objects: Vec<(&'static ExternalKind, String)> = Vec::new();
    let defaults = current.profile.as_ref().map(|profile| &profile.defaults);
    let topology = wanted.requests(defaults).redis().topology;
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
            Some(served) => read.get_external(&served.resource, &name).await?,
            None => None,
        };
        Ok::<_, Problem>((kind, Backend { served, object }))
    }))
    .await?;
    current.backends = found.into_iter().collect();
    if wanted.spec.redis.managed {
        let names = redis::stateful_sets(name, topology);
        let sets = try_join_all(names.into_iter().map(async |name| {
            let set: Option<StatefulSet> = read.get(&name).await?;
            Ok::<_, Problem>(set.map(|set| (name, set)))
        }))
        .await?;
        current.stateful_sets = sets.into_iter().flatten().collect();
    }
    Ok(())
}

/// Queries the database if the answer decides something: before the first use of a provided one, and before an upgrade
/// continues.
async fn ask(
    setup: &Setup,
    read: &Reader,
    wanted: &Wanted,
    current: &Current,
) -> Result<Option<Result<Answer, String>>, Problem> {
    let prerequisites = Prerequisites::of(wanted, current);
    let Ok(upgrade) = &prerequisites.upgrade else {
        return Ok(None);
    };
    let is_first = current.release.is_none() && wanted.spec.postgres.credentials_secret.is_some();
    let is_next = upgrade.held.as_ref().is_some_and(|held| held.needs_answer);
    if !is_first && !is_next {
        return Ok(None);
    }
    let Ok(psql) = &prerequisites.postgres else {
        return Ok(None);
    };
    let Some(psql) = psql else {
        return Ok(Some(Err("only helm.values say where the database is".into())));
    };
    let secret = match current.secrets.get(&psql.password.secret) {
        // A shape has no password.
        Some(_) if current.storage_resolved => read.get::<Secret>(&psql.password.secret).await?,
        secret => secret.cloned(),
    };
    match secret {
        Some(secret) => Ok(Some(database::ask(&setup.pools, psql, &secret).await)),
        None => Ok(None),
    }
}

async fn state(read: &Reader, cleanup: &CleanupTarget) -> Result<CleanupState, Problem> {
    let release = match read.served(&HELM_RELEASE).await? {
        Some(kind) => release(read, &kind, &flux::name(&cleanup.name))
            .await?
            .filter(|release| is_owned(&release.metadata, read.parent()))
            .map(|release| (kind, release)),
        None => None,
    };
    let secrets = try_join_all(
        cleanup
            .secrets
            .iter()
            .map(async |name| read.get::<Secret>(name).await),
    )
    .await?;
    let retained = if release.is_none() {
        retained(read, &cleanup.name).await?
    } else {
        Vec::new()
    };
    Ok(CleanupState {
        retained,
        release,
        secrets: secrets.into_iter().flatten().collect(),
        account: own_account(read, None, &cleanup.name).await?,
        parent: read.parent().clone(),
    })
}

/// The objects that other operators run for an instance, independent of its current spec.
async fn retained(read: &Reader, instance: &str) -> Result<Vec<String>, Problem> {
    let objects = [
        (&PERCONA, percona::name(instance)),
        (&REDIS, redis::name(instance)),
        (&REDIS_REPLICATION, redis::name(instance)),
        (&REDIS_SENTINEL, redis::name(instance)),
        (&ELASTICSEARCH, elasticsearch::name(instance)),
    ];
    let found = try_join_all(objects.into_iter().map(async |(kind, name)| {
        let Some(served) = read.served(kind).await? else {
            return Ok::<_, Problem>(None);
        };
        let object = read.get_external(&served.resource, &name).await?;
        Ok(object.map(|_| format!("{} {name}", kind.kind)))
    }))
    .await?;
    Ok(found.into_iter().flatten().collect())
}
