//! The progress of a Deployment's rollout.

use serde_json::Value;

/// The progress of a Deployment's rollout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rollout {
    /// The generation of the Deployment.
    pub generation: i64,
    /// The generation that its controller has observed.
    pub observed: i64,
    /// The desired number of pods.
    pub desired: i64,
    /// The number of pods.
    pub replicas: i64,
    /// The number of pods with the newest template.
    pub updated: i64,
    /// The number of ready pods.
    pub ready: i64,
    /// The number of available pods.
    pub available: i64,
    /// Why it makes no progress, as its controller reports it.
    pub stuck: Option<String>,
}

impl Rollout {
    /// Reads it from a live Deployment.
    pub(super) fn of(live: &Value) -> Self {
        let number = |path: &str| live.pointer(path).and_then(Value::as_i64);
        let status = |field: &str| number(&format!("/status/{field}")).unwrap_or(0);
        Self {
            generation: number("/metadata/generation").unwrap_or(0),
            observed: status("observedGeneration"),
            desired: number("/spec/replicas").unwrap_or(1),
            replicas: status("replicas"),
            updated: status("updatedReplicas"),
            ready: status("readyReplicas"),
            available: status("availableReplicas"),
            stuck: stuck(live),
        }
    }

    /// Whether all pods have the newest template and are available.
    pub fn is_complete(&self) -> bool {
        self.observed >= self.generation
            && self.updated >= self.desired
            && self.available >= self.desired
            && self.replicas == self.updated
    }
}

/// The message of the condition that reports it: the progress deadline has passed, or no pod could be created.
fn stuck(live: &Value) -> Option<String> {
    let conditions = live.pointer("/status/conditions")?.as_array()?;
    let says = |condition: &&Value| {
        let (kind, status) = (condition["type"].as_str(), condition["status"].as_str());
        matches!(
            (kind, status),
            (Some("Progressing"), Some("False")) | (Some("ReplicaFailure"), Some("True"))
        )
    };
    let condition = conditions.iter().find(says)?;
    condition["message"].as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn deployment(generation: i64, status: &Value) -> Rollout {
        Rollout::of(&json!({
            "metadata": { "generation": generation },
            "spec": { "replicas": 2 },
            "status": status,
        }))
    }

    #[test]
    fn complete_is_only_what_is_new_and_available_now() {
        let done =
            json!({ "observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2 });
        assert!(deployment(2, &done).is_complete());
        assert!(
            !deployment(3, &done).is_complete(),
            "its controller has not seen the change"
        );
        for (field, value) in [("updatedReplicas", 1), ("availableReplicas", 1), ("replicas", 3)] {
            let mut status = done.clone();
            status[field] = value.into();
            assert!(!deployment(2, &status).is_complete(), "{field}");
        }
        assert!(!deployment(1, &json!({})).is_complete());
    }

    #[test]
    fn none_wanted_and_none_there_is_complete() {
        let rollout = Rollout::of(&json!({
            "metadata": { "generation": 1 }, "spec": { "replicas": 0 }, "status": { "observedGeneration": 1 },
        }));
        assert!(rollout.is_complete());
    }

    #[test]
    fn what_holds_a_rollout_up_is_told_in_its_own_words() {
        let with = |kind: &str, status: &str| {
            let conditions = json!([
                { "type": "Available", "status": "False", "message": "not this" },
                { "type": kind, "status": status, "message": "quota exceeded" },
            ]);
            deployment(1, &json!({ "conditions": conditions })).stuck
        };
        assert_eq!(with("ReplicaFailure", "True").as_deref(), Some("quota exceeded"));
        assert_eq!(with("Progressing", "False").as_deref(), Some("quota exceeded"));
        assert_eq!(with("Progressing", "True"), None);
        assert_eq!(with("ReplicaFailure", "False"), None);
    }
}
