//! Reads the state of an instance. Reads only.

mod backends;
mod database;
mod flux;
mod history;
mod secrets;

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::RoleBinding;
use stanchion_api::gitlab::{DEFAULT_MAP, GitlabProfileSpec, GitlabVersionMapSpec};
use stanchion_api::{GitlabProfile, GitlabVersionMap};
use stanchion_kernel::context::Parent;
use stanchion_kernel::{Problem, Reader};

#[cfg(test)]
pub(crate) use self::backends::Backend;
pub(super) use self::backends::retained;
pub(crate) use self::backends::{Backends, is_made_here};
#[cfg(test)]
pub(crate) use self::database::Answer;
pub(crate) use self::database::Database;
pub(crate) use self::flux::Flux;
pub(super) use self::flux::release;
pub(super) use self::history::{History, history};
use super::cache::{Cached, InstanceCache, Shapes};
use super::prerequisites::Prerequisites;
use super::target::Wanted;
use crate::Setup;
use crate::account;
use crate::backends::percona;
use crate::charts::Tenants;
use crate::helm::{Deployed, Unreadable};
use crate::record;
use crate::values::Checksums;

/// The observed state, and what follows from it.
pub struct Observed {
    /// The state.
    pub current: Current,
    /// What the instance depends on: how to use it, or what blocks it.
    pub prerequisites: Prerequisites,
}

/// The state of an instance.
#[derive(Clone)]
pub struct Current {
    /// The instance as the owner of writes.
    pub parent: Parent,
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
    /// Fingerprints that show changes of Secrets without revealing them.
    pub checksums: Checksums,
    /// Whether the storage is unchanged since its derived Secrets were up to date. The Secrets are then only shapes.
    pub storage_resolved: bool,
    /// The initial statements of the database.
    pub init: Option<ConfigMap>,
    /// The record of the last version.
    pub record: Option<ConfigMap>,
    /// The objects of other operators.
    pub backends: Backends,
    pub flux: Flux,
    /// The release that Helm itself deployed, if Flux has none; or why it cannot be read.
    pub helm: Option<Result<Deployed, Unreadable>>,
    /// The database's answer.
    pub database: Database,
}

/// Reads everything that the plan needs.
pub(crate) async fn observe(
    setup: &Setup,
    cache: &InstanceCache,
    read: &Reader,
    wanted: &Wanted,
) -> Result<Observed, Problem> {
    let cached = cache.take(&read.parent().uid);
    let mut current = Box::pin(current(setup, cached.as_ref(), read, wanted)).await?;
    let prerequisites = Prerequisites::of(wanted, &current);
    let prerequisites = match database::ask(setup, read, wanted, &current, &prerequisites).await? {
        Database::NotAsked => prerequisites,
        answered => {
            current.database = answered;
            prerequisites.with_answer(wanted, &current)
        }
    };
    Ok(Observed {
        current,
        prerequisites,
    })
}

async fn current(
    setup: &Setup,
    cached: Option<&Cached>,
    read: &Reader,
    wanted: &Wanted,
) -> Result<Current, Problem> {
    let record_name = record::name(&wanted.name);
    let (map, profile, (shapes, storage_resolved), init, flux, account, record) = tokio::try_join!(
        map(read, cached),
        profile(read, cached, wanted),
        secrets::secrets(&setup.fingerprints, cached, read, wanted),
        init(read, cached, wanted),
        flux::flux(read, cached, wanted),
        own_account(read, cached.map(|cached| &cached.account), &wanted.name),
        config_map(read, &record_name, cached.map(|cached| &cached.record))
    )?;
    let Shapes {
        secrets, checksums, ..
    } = shapes;
    let given = profile
        .as_ref()
        .and_then(|profile| profile.release.service_account_name.as_ref());
    let given_account = match given {
        Some(name) => read.get::<ServiceAccount>(name).await?.is_some(),
        None => false,
    };
    let helm = flux::predecessor(read, cached, wanted, flux.release.as_ref()).await?;
    let backends = backends::backends(read, cached, wanted, profile.as_ref()).await?;
    Ok(Current {
        parent: read.parent().clone(),
        map,
        profile,
        tenants: Arc::clone(&setup.tenants),
        account,
        given_account,
        secrets,
        checksums,
        storage_resolved,
        init,
        record,
        backends,
        flux,
        helm,
        database: Database::NotAsked,
    })
}

async fn map(read: &Reader, cached: Option<&Cached>) -> Result<Option<GitlabVersionMapSpec>, Problem> {
    if read.is_unchanged_cluster_wide::<GitlabVersionMap>(DEFAULT_MAP)
        && let Some(cached) = cached
    {
        return Ok(cached.map.clone());
    }
    let map: Option<GitlabVersionMap> = read.get_cluster_wide(DEFAULT_MAP).await?;
    Ok(map.map(|map| map.spec))
}

/// The profile that the spec names.
async fn profile(
    read: &Reader,
    cached: Option<&Cached>,
    wanted: &Wanted,
) -> Result<Option<GitlabProfileSpec>, Problem> {
    let Some(name) = &wanted.spec.profile else {
        return Ok(None);
    };
    if read.is_unchanged_cluster_wide::<GitlabProfile>(name)
        && let Some(cached) = cached
    {
        return Ok(cached.profile.clone());
    }
    let profile: Option<GitlabProfile> = read.get_cluster_wide(name).await?;
    Ok(profile.map(|profile| profile.spec))
}

/// The initial statements of a managed database.
async fn init(read: &Reader, cached: Option<&Cached>, wanted: &Wanted) -> Result<Option<ConfigMap>, Problem> {
    if !wanted.spec.postgres.managed {
        return Ok(None);
    }
    let name = percona::init_name(&wanted.name);
    config_map(read, &name, cached.map(|cached| &cached.init)).await
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
pub(super) async fn own_account(
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

#[cfg(test)]
impl Current {
    /// The state of an instance in a cluster with nothing else, for tests to add to.
    pub(crate) fn alone(instance: &stanchion_api::GitlabInstance) -> Self {
        Self {
            parent: Parent::of(instance),
            map: None,
            profile: None,
            tenants: Arc::default(),
            account: account::Found::default(),
            given_account: false,
            secrets: BTreeMap::new(),
            checksums: Checksums::default(),
            storage_resolved: false,
            init: None,
            record: None,
            backends: Backends::default(),
            flux: Flux {
                repository_kind: None,
                release_kind: None,
                repository: None,
                release: None,
            },
            helm: None,
            database: Database::NotAsked,
        }
    }
}
