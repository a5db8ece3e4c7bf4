//! Makes it so. Every write may be repeated; the process can be killed between any two.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::core::DynamicObject;
use serde_json::json;
use stanchion_kernel::{Problem, Writer};

use super::findings::Obstacle;
use super::plan::{Deed, Plan};
use crate::flux::HELM_REPOSITORY;

/// What was done.
#[derive(Default)]
pub struct Applied {
    /// The release, if it was written.
    pub release: Option<DynamicObject>,
    /// Everything else that the next pass need not read again.
    pub written: Written,
}

/// What was written, as the API server has it now.
#[derive(Default)]
pub struct Written {
    /// The account.
    pub account: Option<ServiceAccount>,
    /// Its rights.
    pub binding: Option<RoleBinding>,
    /// `ConfigMaps`, by name.
    pub maps: BTreeMap<String, ConfigMap>,
    /// Where charts are.
    pub repository: Option<DynamicObject>,
    /// The names of all Secrets that were written.
    pub secrets: Vec<String>,
    /// The Secrets that were written.
    pub storage: Vec<Secret>,
    /// Whether the Secrets of the buckets are as they should be.
    pub storage_settled: bool,
    /// Whether a Secret or an account was removed.
    pub removed: bool,
}

/// Does what the plan says. Says what is then still in the way.
pub async fn apply(write: &Writer, plan: Plan, applied: &mut Applied) -> Result<Option<Obstacle>, Problem> {
    let written = &mut applied.written;
    written.storage_settled = plan.storage_settled;
    for deed in plan.deeds {
        match deed {
            Deed::Secret(intent) => {
                written.storage.push(write.apply(&intent).await?);
                written.secrets.push(intent.name().to_owned());
            }
            Deed::ConfigMap(intent) => {
                let map = write.apply(&intent).await?;
                written.maps.insert(intent.name().to_owned(), map);
            }
            Deed::Foreign(kind, intent) => {
                let object = write.apply_foreign(&kind, &intent).await?;
                if kind.kind == HELM_REPOSITORY.kind {
                    written.repository = Some(object);
                }
            }
            Deed::Release(kind, intent, before) => {
                if let Some(before) = before {
                    write.succeed_foreign(&kind, &before).await?;
                }
                applied.release = Some(write.apply_foreign(&kind, &intent).await?);
            }
            Deed::Account(intent) => written.account = Some(write.apply(&intent).await?),
            Deed::Binding(intent) => written.binding = Some(write.apply(&intent).await?),
            Deed::Restrict(kind, release, account) => {
                let fields = json!({ "serviceAccountName": account });
                applied.release = Some(write.merge_foreign(&kind, &release, &fields).await?);
            }
            Deed::RemoveAccount(account) => {
                write.delete::<ServiceAccount>(&account).await?;
                written.removed = true;
            }
            Deed::RemoveBinding(binding) => {
                write.delete::<RoleBinding>(&binding).await?;
                written.removed = true;
            }
            Deed::Uninstall(kind, release) => write.delete_foreign(&kind, &release).await?,
            Deed::RemoveSecret(secret) => {
                write.delete::<Secret>(&secret).await?;
                written.removed = true;
            }
        }
    }
    Ok(plan.obstacle)
}
