//! What the pods of all backends share: their placement and their disks.

use serde_json::{Value, json};
use stanchion_api::gitlab::Volume;

use super::request::Placement;

/// A claim for a disk of one pod.
pub(super) fn claim(storage: &Volume, size: &str) -> Value {
    let size = storage.size.as_ref().map_or(size, |size| size.0.as_str());
    let mut claim = json!({
        "accessModes": ["ReadWriteOnce"],
        "resources": { "requests": { "storage": size } },
    });
    if let Some(class) = &storage.storage_class {
        claim["storageClassName"] = json!(class);
    }
    claim
}

impl Placement<'_> {
    /// Writes the placement into an object with the fields of a pod. Empty fields are not written.
    pub(super) fn place(&self, pod: &mut Value) {
        if !self.node_selector.is_empty() {
            pod["nodeSelector"] = json!(self.node_selector);
        }
        self.tolerate(pod);
    }

    /// The same, for kinds without a `nodeSelector`, by node affinity.
    pub(super) fn place_by_affinity(&self, pod: &mut Value) {
        if !self.node_selector.is_empty() {
            let labels = self.node_selector.iter();
            let expressions: Vec<Value> = labels
                .map(|(label, value)| json!({ "key": label, "operator": "In", "values": [value] }))
                .collect();
            pod["affinity"] = json!({ "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{ "matchExpressions": expressions }],
                },
            } });
        }
        self.tolerate(pod);
    }

    fn tolerate(&self, pod: &mut Value) {
        if !self.tolerations.is_empty() {
            pod["tolerations"] = json!(self.tolerations);
        }
    }
}
