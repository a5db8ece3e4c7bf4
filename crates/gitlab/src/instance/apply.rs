//! Makes it so. Every write may be repeated; the process can be killed between any two.

use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::core::DynamicObject;
use serde_json::json;
use stanchion_kernel::{Problem, Writer};

use super::plan::{Deed, Plan};

/// What was done.
#[derive(Default)]
pub struct Applied {
    /// The release, if it was written.
    pub release: Option<DynamicObject>,
}

/// Does what the plan says. What is still in the way then is what the pass ends with.
pub async fn apply(write: &Writer, plan: Plan, applied: &mut Applied) -> Result<(), Problem> {
    for deed in plan.deeds {
        match deed {
            Deed::Secret(intent) => drop(write.apply::<Secret>(&intent).await?),
            Deed::ConfigMap(intent) => drop(write.apply::<ConfigMap>(&intent).await?),
            Deed::Foreign(kind, intent) => drop(write.apply_foreign(&kind, &intent).await?),
            Deed::Release(kind, intent, before) => {
                if let Some(before) = before {
                    write.succeed_foreign(&kind, &before).await?;
                }
                applied.release = Some(write.apply_foreign(&kind, &intent).await?);
            }
            Deed::Account(intent) => drop(write.apply::<ServiceAccount>(&intent).await?),
            Deed::Binding(intent) => drop(write.apply::<RoleBinding>(&intent).await?),
            Deed::Restrict(kind, release, account) => {
                let fields = json!({ "serviceAccountName": account });
                applied.release = Some(write.merge_foreign(&kind, &release, &fields).await?);
            }
            Deed::RemoveAccount(account) => write.delete::<ServiceAccount>(&account).await?,
            Deed::RemoveBinding(binding) => write.delete::<RoleBinding>(&binding).await?,
            Deed::Uninstall(kind, release) => write.delete_foreign(&kind, &release).await?,
            Deed::RemoveSecret(secret) => write.delete::<Secret>(&secret).await?,
        }
    }
    plan.obstacle.map_or(Ok(()), |obstacle| Err(obstacle.problem()))
}
