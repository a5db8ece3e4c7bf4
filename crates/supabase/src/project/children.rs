//! The children of a project by kind: their cached state, the required changes, and how to apply them.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use k8s_openapi::api::networking::v1::{Ingress, NetworkPolicy};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::CustomResource;
use kube::core::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use stanchion_kernel::apply::{Intent, Takeover};
use stanchion_kernel::children::{Child, ChildChange, ChildKinds, Rollout, decide};
use stanchion_kernel::context::Parent;
use stanchion_kernel::{Problem, Reader, Writer};

use crate::components::MANAGED_BY;

/// One line for each kind: everything that differs by kind is here.
macro_rules! kinds {
    ($($field:ident: $kind:ident, $summary:ty;)*) => {
        /// The cached children.
        #[derive(Default)]
        pub struct Children {
            $($field: Vec<Child<$summary>>,)*
        }

        /// The kinds that the kernel watches.
        pub fn child_kinds() -> ChildKinds {
            ChildKinds::labelled(MANAGED_BY)$(.with::<$kind>())*
        }

        impl Children {
            /// The cached state.
            pub fn known(read: &Reader) -> Self {
                Self { $($field: read.children::<$kind>(),)* }
            }

            /// The same, including what was written.
            pub fn left_by(write: &Writer) -> Self {
                Self { $($field: write.children::<$kind>(),)* }
            }

            /// A digest of our fields of each child, which changes when somebody changes one. `None` while a child is
            /// not owned by us alone.
            pub fn fingerprint(&self) -> Option<[u8; 32]> {
                let mut digest = Sha256::new();
                $(
                    let mut children: Vec<_> = self.$field.iter().collect();
                    children.sort_by(|one, other| one.name.cmp(&other.name));
                    for child in children {
                        digest.update(concat!(stringify!($kind), "/"));
                        digest.update(format!("{} {}\n", child.name, child.uid));
                        digest.update(child.fingerprint()?);
                    }
                )*
                Some(digest.finalize().into())
            }

            /// The change that brings a child to this state.
            pub fn step(&self, object: &Value, parent: &Parent) -> Result<ObjectChange, Problem> {
                let intent = Intent::new(object, parent)?;
                let name = intent.name().to_owned();
                match object["kind"].as_str() {
                    $(Some(stringify!($kind)) => {
                        let known = self.$field.iter().find(|child| child.name == name);
                        Ok(ObjectChange::$kind(decide(intent, known, parent)))
                    })*
                    kind => Err(Problem::permanent(
                        "UnknownKind",
                        format!("no child can be of kind {kind:?}"),
                    )),
                }
            }

            /// The children to delete: all that are not among these objects.
            pub fn left_over(&self, wanted: &[Value]) -> Vec<ObjectChange> {
                let is_wanted = |kind: &str, name: &str| {
                    wanted.iter().any(|object| {
                        let named = object.pointer("/metadata/name").and_then(Value::as_str);
                        object["kind"] == kind && named == Some(name)
                    })
                };
                let mut changes = Vec::new();
                $(for child in &self.$field {
                    if !child.terminating && !is_wanted(stringify!($kind), &child.name) {
                        changes.push(ObjectChange::Remove(Removal::$kind, Box::new(meta(child))));
                    }
                })*
                changes
            }
        }

        /// A change of one child.
        #[derive(Clone)]
        pub enum ObjectChange {
            $(
                #[allow(missing_docs)]
                $kind(ChildChange),
            )*
            /// Deletes it.
            Remove(Removal, Box<ObjectMeta>),
        }

        /// The kind of a deleted child.
        #[derive(Clone, Copy)]
        #[allow(missing_docs)]
        pub enum Removal {
            $($kind,)*
        }

        impl ObjectChange {
            /// Whether there is nothing to do.
            pub fn is_nothing(&self) -> bool {
                match self {
                    $(Self::$kind(step) => *step == ChildChange::Keep,)*
                    Self::Remove(..) => false,
                }
            }

            /// Whether it restores an earlier intent: the child is gone, or somebody has changed it, but the intent has
            /// not changed.
            pub fn is_repair(&self) -> bool {
                match self {
                    $(Self::$kind(step) => !matches!(step, ChildChange::Write(_)),)*
                    Self::Remove(..) => false,
                }
            }

            /// Applies the change, and returns whether anything was written. Fields that a predecessor set on children
            /// of the project are removed; an object of that name without a controller is left alone, unless it allows
            /// its adoption.
            pub async fn apply_change(self, write: &Writer) -> Result<bool, Problem> {
                match self {
                    $(Self::$kind(step) => write.apply_change::<$kind>(step, Takeover::AdoptFields).await,)*
                    Self::Remove(kind, child) => {
                        match kind {
                            $(Removal::$kind => write.delete::<$kind>(&child).await?,)*
                        }
                        Ok(true)
                    }
                }
            }
        }
    };
}

kinds! {
    config_maps: ConfigMap, ();
    services: Service, ();
    deployments: Deployment, Rollout;
    autoscalers: HorizontalPodAutoscaler, ();
    budgets: PodDisruptionBudget, ();
    ingresses: Ingress, ();
    policies: NetworkPolicy, ();
}

impl Children {
    /// Whether all children are in their desired state: somebody may have changed or deleted one while others were
    /// written.
    pub fn are(&self, wanted: &[Value], parent: &Parent) -> bool {
        let is_done = |object| self.step(object, parent).is_ok_and(|change| change.is_nothing());
        wanted.iter().all(is_done) && self.left_over(wanted).is_empty()
    }

    /// Whether every Deployment has rolled out.
    pub fn have_rolled_out(&self) -> bool {
        let mut rollouts = self.deployments.iter().map(|child| &child.summary);
        !self.deployments.is_empty() && rollouts.all(Rollout::is_complete)
    }

    /// Whether a Deployment has fewer available pods than desired.
    pub fn lack_pods(&self) -> bool {
        let mut rollouts = self.deployments.iter().map(|child| &child.summary);
        rollouts.any(|rollout| rollout.available < rollout.desired)
    }

    /// The rollout of a Deployment.
    pub fn rollout(&self, name: &str) -> Option<&Rollout> {
        let child = self.deployments.iter().find(|child| child.name == name)?;
        Some(&child.summary)
    }
}

#[cfg(test)]
impl Children {
    /// Children that are only Deployments with these rollouts.
    pub(super) fn rolled(deployments: impl IntoIterator<Item = (String, Rollout)>) -> Self {
        let child = |(name, rollout): (String, Rollout)| Child::named(&name, rollout);
        Self {
            deployments: deployments.into_iter().map(child).collect(),
            ..Self::default()
        }
    }
}

impl ObjectChange {
    /// The name of the Deployment that this writes.
    pub fn deployment(&self) -> Option<&str> {
        match self {
            Self::Deployment(
                ChildChange::Create(intent) | ChildChange::Write(intent) | ChildChange::Verify(intent),
            ) => Some(intent.name()),
            _ => None,
        }
    }
}

fn meta<Summary>(child: &Child<Summary>) -> ObjectMeta {
    ObjectMeta {
        name: Some(child.name.clone()),
        uid: Some(child.uid.clone()),
        ..ObjectMeta::default()
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
