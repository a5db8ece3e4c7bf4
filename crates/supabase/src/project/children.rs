//! The children of a project, from the cache of the kernel, and the kinds that they have.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use k8s_openapi::api::networking::v1::{Ingress, NetworkPolicy};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::CustomResource;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use stanchion_kernel::apply::{Intent, ObjectChange, Takeover};
use stanchion_kernel::children::{self, ChildKinds, Rollout};
use stanchion_kernel::{Problem, Reader, Writer};

use crate::components::MANAGED_BY;

/// The kinds that the kernel watches.
pub(crate) fn child_kinds() -> ChildKinds {
    ChildKinds::labelled(MANAGED_BY)
        .with::<ConfigMap>()
        .with::<Service>()
        .with::<Deployment>()
        .with::<HorizontalPodAutoscaler>()
        .with::<PodDisruptionBudget>()
        .with::<Ingress>()
        .with::<NetworkPolicy>()
}

/// The cached children.
#[derive(Default)]
pub struct Children {
    all: children::Children,
    /// The Deployments, by name.
    rollouts: Vec<(String, Rollout)>,
}

impl Children {
    /// The cached state.
    pub fn known(read: &Reader) -> Self {
        Self::of(read.all_children())
    }

    /// The same, including what was written.
    pub(crate) fn left_by(write: &Writer) -> Self {
        Self::of(write.all_children())
    }

    fn of(all: children::Children) -> Self {
        Self {
            rollouts: all.rollouts(),
            all,
        }
    }

    /// A digest of our fields of each child, which changes when somebody changes one. `None` while a child is not owned
    /// by us alone.
    pub fn fingerprint(&self) -> Option<[u8; 32]> {
        self.all.fingerprint()
    }

    /// The changes that bring all children to this state. Fields that a predecessor set on children of the project are
    /// removed; an object of that name without a controller is left alone, unless it allows its adoption.
    pub fn changes(&self, intents: &[Intent]) -> Result<Vec<ObjectChange>, Problem> {
        self.all.changes(intents, Takeover::AdoptFields)
    }

    /// Hands the number of pods over to an autoscaler that is about to be created: the API server would set it to one as
    /// soon as the Deployment's intent does not name it any more. It stays if another field manager has set it, and a patch
    /// sets only what it changes, so the number differs by one if it is within the limits.
    pub(crate) fn hand_over(&self, changes: &[ObjectChange]) -> Vec<ObjectChange> {
        let autoscalers: Vec<Intent> = changes.iter().filter_map(new_autoscaler).collect();
        let handed = |change: &ObjectChange| {
            let autoscaler = autoscalers
                .iter()
                .find(|autoscaler| autoscaler.name() == change.name());
            let autoscaler = autoscaler.filter(|_| matches!(change, ObjectChange::Apply(_)))?;
            let rollout = self
                .rollout(change.name())
                .filter(|_| change.kind() == "Deployment")?;
            let replicas = handed_over(rollout.desired, autoscaler)?;
            self.all
                .merge(change.kind(), change.name(), json!({ "replicas": replicas }))
        };
        let each = changes.iter().map(|change| (handed(change), change.clone()));
        each.flat_map(|(handed, change)| handed.into_iter().chain([change]))
            .collect()
    }

    /// Whether all children are in their desired state: somebody may have changed or deleted one while others were
    /// written.
    pub fn are(&self, intents: &[Intent]) -> bool {
        self.changes(intents).is_ok_and(|changes| changes.is_empty())
    }

    /// Whether every Deployment has rolled out.
    pub(crate) fn have_rolled_out(&self) -> bool {
        !self.rollouts.is_empty() && self.rollouts.iter().all(|(_, rollout)| rollout.is_complete())
    }

    /// Whether a Deployment has fewer available pods than desired.
    pub(crate) fn lack_pods(&self) -> bool {
        let mut rollouts = self.rollouts.iter();
        rollouts.any(|(_, rollout)| rollout.available < rollout.desired)
    }

    /// The rollout of a Deployment.
    pub fn rollout(&self, name: &str) -> Option<&Rollout> {
        let (_, rollout) = self.rollouts.iter().find(|(known, _)| known == name)?;
        Some(rollout)
    }
}

/// The autoscaler that a change creates.
fn new_autoscaler(change: &ObjectChange) -> Option<Intent> {
    match change {
        ObjectChange::Create(intent, _) if intent.kind() == "HorizontalPodAutoscaler" => Some(intent.clone()),
        _ => None,
    }
}

/// The number of pods that an autoscaler starts with instead of these; `None` for at most one, which is the API server's
/// own default.
fn handed_over(desired: i64, autoscaler: &Intent) -> Option<i64> {
    let limit = |name: &str| autoscaler.body().pointer(&format!("/spec/{name}"))?.as_i64();
    let most = limit("maxReplicas").unwrap_or(i64::MAX);
    let least = limit("minReplicas").unwrap_or(1).min(most);
    let within = desired.clamp(least, most);
    let may_shrink = desired >= most && desired > least.max(2);
    let other = if may_shrink { desired - 1 } else { desired + 1 };
    (desired > 1).then_some(if within == desired { other } else { within })
}

#[cfg(test)]
impl Children {
    /// Children that are only Deployments with these rollouts.
    pub(super) fn rolled(deployments: impl IntoIterator<Item = (String, Rollout)>) -> Self {
        Self {
            rollouts: deployments.into_iter().collect(),
            ..Self::default()
        }
    }
}

/// The `HTTPRoute` of the Gateway API, as far as the operator writes it. A cluster need not serve the kind, so it is not
/// watched.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize)]
#[kube(
    group = "gateway.networking.k8s.io",
    version = "v1",
    kind = "HTTPRoute",
    namespaced,
    schema = "disabled"
)]
#[allow(missing_docs)]
pub struct HttpRouteSpec {
    #[serde(flatten)]
    pub fields: BTreeMap<String, Value>,
}

#[cfg(test)]
mod tests {
    use stanchion_api::SupabaseProject;
    use stanchion_kernel::context::Parent;

    use super::*;

    #[test]
    fn an_autoscaler_never_begins_with_one_pod_of_several() {
        let project: SupabaseProject = serde_json::from_value(json!({
            "apiVersion": "supabase.strrl.dev/v1alpha1", "kind": "SupabaseProject",
            "metadata": { "name": "shop", "namespace": "ns", "uid": "u" },
            "spec": {
                "projectId": "shop",
                "database": { "secretRef": { "name": "db" } }, "storage": { "secretRef": { "name": "s3" } },
            },
        }))
        .unwrap();
        let handed = |desired: i64, least: i64, most: i64| {
            let autoscaler = json!({
                "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": { "name": "shop-auth" },
                "spec": { "minReplicas": least, "maxReplicas": most },
            });
            handed_over(desired, &Intent::new(&autoscaler, &Parent::of(&project)).unwrap())
        };
        assert_eq!(handed(1, 1, 5), None, "the API server's default");
        assert_eq!(handed(0, 1, 5), None);
        assert_eq!(handed(3, 1, 5), Some(4));
        assert_eq!(handed(5, 1, 5), Some(4));
        assert_eq!(handed(3, 4, 6), Some(4));
        assert_eq!(handed(9, 1, 5), Some(5));
        assert_eq!(
            handed(3, 3, 3),
            Some(4),
            "only another number changes its manager"
        );
        assert_eq!(handed(2, 1, 2), Some(3), "never one");
    }
}
