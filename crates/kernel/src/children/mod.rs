//! The cache of children, for controllers with many children per object.
//!
//! A read before each write would double the requests of such a controller, and a restart would read every child again.
//! So the watch of the cache receives complete objects and keeps a summary of each: the hash of its intent, a
//! [digest](owned) of the current values of our fields, and the [`Rollout`] of a Deployment. The kernel
//! [decides](Children::changes) from that summary whether a child has to be written, and wakes the owner when the summary changes,
//! not on every change of the child.

mod cache;
mod owned;
mod rollout;
mod store;
mod watch;

use kube::core::ApiResource;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

pub use cache::ChildCaches;
use cache::same_kind;
pub use rollout::Rollout;
use store::Child;
pub use watch::ChildKinds;
pub(crate) use watch::WatchContext;

use crate::apply::{Intent, ObjectChange, Takeover};
use crate::problem::Problem;

/// The cached children of one object, of all kinds that its controller caches.
#[derive(Clone, Debug, Default)]
pub struct Children {
    /// The uid of the object.
    parent: String,
    /// In the order in which the controller lists its kinds.
    by_kind: Vec<(ApiResource, Vec<Child>)>,
}

impl Children {
    /// The change that makes a child as intended; `None` if it is, or while it is being deleted: the watch reports the end.
    pub fn change(&self, intent: Intent, takeover: Takeover) -> Result<Option<ObjectChange>, Problem> {
        let kind = intent.resource();
        let same = |(cached, _): &&(ApiResource, _)| same_kind(cached, kind);
        let Some((_, children)) = self.by_kind.iter().find(same) else {
            return Err(Problem::permanent(
                "UnknownKind",
                format!("no child can be of kind {}", kind.kind),
            ));
        };
        let child = children.iter().find(|child| child.name == intent.name());
        Ok(change_of(intent, child, &self.parent, takeover))
    }

    /// The changes that make the children as intended, in the order of the intents, and then delete all other children.
    pub fn changes(&self, intents: &[Intent], takeover: Takeover) -> Result<Vec<ObjectChange>, Problem> {
        let mut changes = Vec::new();
        for intent in intents {
            changes.extend(self.change(intent.clone(), takeover)?);
        }
        for (resource, children) in &self.by_kind {
            let is_intended = |child: &Child| {
                intents
                    .iter()
                    .any(|intent| intent.kind() == resource.kind && intent.name() == child.name)
            };
            let others = children
                .iter()
                .filter(|child| !child.terminating && !is_intended(child));
            changes.extend(others.map(|child| ObjectChange::Delete(child.observed(resource))));
        }
        Ok(changes)
    }

    /// The change that merges fields into the spec of a child.
    pub fn merge(&self, kind: &str, name: &str, spec: Value) -> Option<ObjectChange> {
        let (resource, children) = self.by_kind.iter().find(|(resource, _)| resource.kind == kind)?;
        let child = children.iter().find(|child| child.name == name)?;
        Some(ObjectChange::Merge(child.observed(resource), spec))
    }

    /// The name and the progress of each Deployment.
    pub fn rollouts(&self) -> Vec<(String, Rollout)> {
        let all = self.by_kind.iter().flat_map(|(_, children)| children);
        all.filter_map(|child| Some((child.name.clone(), child.rollout.as_deref()?.clone())))
            .collect()
    }

    /// A digest of our fields of each child, which changes when somebody changes one. `None` while a child is being
    /// deleted or has no field of ours.
    pub fn fingerprint(&self) -> Option<[u8; 32]> {
        let mut digest = Sha256::new();
        for (resource, children) in &self.by_kind {
            for child in children {
                digest.update(format!("{}/{} {}\n", resource.kind, child.name, child.uid));
                digest.update(child.owned.filter(|_| !child.terminating)?);
            }
        }
        Some(digest.finalize().into())
    }
}

/// The change that makes one child as intended.
fn change_of(
    intent: Intent,
    child: Option<&Child>,
    parent: &str,
    takeover: Takeover,
) -> Option<ObjectChange> {
    let Some(child) = child else {
        return Some(ObjectChange::Create(intent, takeover));
    };
    if child.owner != parent {
        return Some(ObjectChange::Verify(intent, takeover));
    }
    if child.terminating {
        return None;
    }
    if child.intent.is_none() {
        // It belongs to the object and was not written by us: it is a predecessor's.
        return Some(ObjectChange::Verify(intent, takeover));
    }
    if child.intent.as_deref() != intent.hash() {
        return Some(ObjectChange::Apply(intent.over(&child.uid)));
    }
    let as_intended = child.owned == Some(owned::of_intent(intent.body()));
    let is_verified = child.verified.is_some() && child.verified == child.owned;
    (!as_intended && !is_verified).then_some(ObjectChange::Verify(intent, takeover))
}
