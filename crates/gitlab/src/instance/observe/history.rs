//! Reads what the record of a deleted instance's versions is made from.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::core::DynamicObject;
use stanchion_api::GitlabVersionMap;
use stanchion_api::gitlab::patterns::is_name;
use stanchion_api::gitlab::{DEFAULT_MAP, GitlabVersionMapSpec};
use stanchion_kernel::lenient::Lenient;
use stanchion_kernel::{Problem, Reader};

use super::super::cleanup::CleanupTarget;
use super::config_map;
use crate::backends::kinds::PERCONA;
use crate::backends::percona;
use crate::record;

/// What the record of the versions is made from.
#[derive(Default)]
pub struct History {
    pub map: Option<GitlabVersionMapSpec>,
    /// The record.
    pub record: Option<ConfigMap>,
    /// The identity of the database.
    pub database: Option<String>,
}

/// Reads the map, the record and the identity of the database.
pub(in super::super) async fn history(read: &Reader, cleanup: &CleanupTarget) -> Result<History, Problem> {
    let spec = &cleanup.spec;
    // What cannot be read of the map does not keep the instance.
    let map: Option<Lenient<GitlabVersionMap>> = read.get_cluster_wide(DEFAULT_MAP).await?;
    let record = config_map(read, &record::name(&cleanup.name), None).await?;
    let managed = if spec.postgres.managed {
        cluster(read, &cleanup.name).await
    } else {
        None
    };
    // The spec of a deleted instance may be invalid.
    let provided = spec.postgres.credentials_secret.as_ref();
    let provided = match provided.filter(|name| is_name(name)) {
        Some(name) => read.get::<Secret>(name).await?,
        None => None,
    };
    Ok(History {
        map: map.and_then(Lenient::into_object).map(|map| map.spec),
        record,
        database: record::database(spec, managed.as_ref(), provided.as_ref()),
    })
}

/// The managed database. What another operator serves does not keep the instance.
async fn cluster(read: &Reader, instance: &str) -> Option<DynamicObject> {
    let served = read.served(&PERCONA).await.ok().flatten()?;
    let found = read
        .get_external(&served.resource, &percona::name(instance))
        .await;
    found.ok().flatten()
}
