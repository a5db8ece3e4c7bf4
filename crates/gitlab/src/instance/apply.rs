//! Applies the plan. Every write is idempotent; the process can be killed between any two.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::core::DynamicObject;
use serde_json::json;
use stanchion_kernel::{Problem, Writer};

use super::plan::ObjectChange;
use crate::flux::HELM_REPOSITORY;

/// The result of the apply step.
#[derive(Default)]
pub struct Applied {
    /// The release, if it was written.
    pub release: Option<DynamicObject>,
    /// Everything else that was written, so that the next reconcile need not read it again.
    pub written: Written,
}

/// The written objects, as returned by the API server.
#[derive(Default)]
pub struct Written {
    /// The account.
    pub account: Option<ServiceAccount>,
    /// The binding of the `ServiceAccount`.
    pub binding: Option<RoleBinding>,
    /// `ConfigMaps`, by name.
    pub maps: BTreeMap<String, ConfigMap>,
    /// The chart repository.
    pub repository: Option<DynamicObject>,
    /// The names of all Secrets that were written.
    pub secrets: Vec<String>,
    /// The Secrets that were written.
    pub storage: Vec<Secret>,
    /// Whether the Secrets of the buckets are up to date.
    pub storage_resolved: bool,
    /// Whether a Secret or a `ServiceAccount` was removed.
    pub removed: bool,
}

/// Carries out the changes, in order.
pub async fn apply(write: &Writer, changes: Vec<ObjectChange>, applied: &mut Applied) -> Result<(), Problem> {
    let written = &mut applied.written;
    for change in changes {
        match change {
            ObjectChange::Secret(intent) => {
                written.storage.push(write.apply(&intent).await?);
                written.secrets.push(intent.name().to_owned());
            }
            ObjectChange::ConfigMap(intent) => {
                let map = write.apply(&intent).await?;
                written.maps.insert(intent.name().to_owned(), map);
            }
            ObjectChange::External(kind, intent) => {
                let object = write.apply_external(&kind, &intent).await?;
                if kind.kind == HELM_REPOSITORY.kind {
                    written.repository = Some(object);
                }
            }
            ObjectChange::Release(kind, intent, before) => {
                if let Some(before) = before {
                    write.take_external_field_ownership(&kind, &before).await?;
                }
                applied.release = Some(write.apply_external(&kind, &intent).await?);
            }
            ObjectChange::Account(intent) => written.account = Some(write.apply(&intent).await?),
            ObjectChange::Binding(intent) => written.binding = Some(write.apply(&intent).await?),
            ObjectChange::Restrict(kind, release, account) => {
                let fields = json!({ "serviceAccountName": account });
                applied.release = Some(write.merge_external(&kind, &release, &fields).await?);
            }
            ObjectChange::RemoveAccount(account) => {
                write.delete::<ServiceAccount>(&account).await?;
                written.removed = true;
            }
            ObjectChange::RemoveBinding(binding) => {
                write.delete::<RoleBinding>(&binding).await?;
                written.removed = true;
            }
            ObjectChange::Uninstall(kind, release) => write.delete_external(&kind, &release).await?,
            ObjectChange::RemoveSecret(secret) => {
                write.delete::<Secret>(&secret).await?;
                written.removed = true;
            }
        }
    }
    Ok(())
}
