//! The children of a project, from the cache of the kernel, and the kinds that they have.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use k8s_openapi::api::networking::v1::{Ingress, NetworkPolicy};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::CustomResource;
use serde::{Deserialize, Serialize};
use serde_json::Value;
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
