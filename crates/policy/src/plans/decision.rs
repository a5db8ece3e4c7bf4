//! Reads whether a plan was approved or rejected, and by whom.
//!
//! There are two ways: the original's annotations, and a condition in the status, which names the person. The author of
//! an annotation is the authenticated user if the webhook has recorded it ([`super::author`]), else the field manager.
//! A rejection overrides an approval.

use kube::ResourceExt;
use stanchion_api::PostgresPolicyPlan;
use stanchion_api::policy::{Decider, annotation};
use stanchion_kernel::redact::FingerprintKey;

use super::author::author;

/// A decision and its decider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The plan may be executed.
    Approved(Author),
    /// The plan must not be executed.
    Rejected(Author),
}

/// Who decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Author {
    /// By name.
    pub who: Decider,
    /// The name is that of a field manager, which a client chooses.
    pub chosen: bool,
}

impl Decision {
    /// The same with the authenticated author, where the plan names one.
    #[must_use]
    pub(crate) fn proven(self, key: &FingerprintKey, plan: &PostgresPolicyPlan) -> Self {
        let name = |found: Author, word: &str| match author(key, plan, word).filter(|_| found.chosen) {
            Some(username) => Author {
                who: Decider {
                    username,
                    ..Decider::default()
                },
                chosen: false,
            },
            None => found,
        };
        match self {
            Self::Approved(who) => Self::Approved(name(who, annotation::APPROVED)),
            Self::Rejected(who) => Self::Rejected(name(who, annotation::REJECTED)),
        }
    }
}

/// The decision about a plan, if there is one.
pub(crate) fn decision(plan: &PostgresPolicyPlan) -> Option<Decision> {
    let rejected = by(plan, annotation::REJECTED, "Denied").map(Decision::Rejected);
    rejected.or_else(|| by(plan, annotation::APPROVED, "Approved").map(Decision::Approved))
}

fn by(plan: &PostgresPolicyPlan, annotation: &str, condition: &str) -> Option<Author> {
    let status = plan.status.as_ref();
    let conditions = status
        .map(|status| status.conditions.as_slice())
        .unwrap_or_default();
    if conditions
        .iter()
        .any(|it| it.type_ == condition && it.status == "True")
    {
        let who = status
            .and_then(|status| status.decided_by.clone())
            .unwrap_or_else(|| unnamed("status"));
        return Some(Author { who, chosen: false });
    }
    let annotated = plan
        .annotations()
        .get(annotation)
        .is_some_and(|value| value == "true");
    annotated.then(|| Author {
        who: manager(plan, annotation),
        chosen: true,
    })
}

/// The field manager of the annotation.
fn manager(plan: &PostgresPolicyPlan, annotation: &str) -> Decider {
    let field = format!("f:{annotation}");
    let owns = |fields: &serde_json::Value| {
        fields
            .pointer("/f:metadata/f:annotations")
            .is_some_and(|annotations| annotations.get(&field).is_some())
    };
    let entry = plan
        .managed_fields()
        .iter()
        .find(|entry| entry.fields_v1.as_ref().is_some_and(|fields| owns(&fields.0)));
    // A client without a field manager has an empty name, which identifies nobody.
    let named = entry
        .and_then(|entry| entry.manager.clone())
        .filter(|name| !name.is_empty());
    named.map_or_else(
        || unnamed("annotation"),
        |username| Decider {
            username,
            ..Decider::default()
        },
    )
}

fn unnamed(form: &str) -> Decider {
    Decider {
        username: format!("unknown ({form})"),
        ..Decider::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn plan(metadata: &Value, status: &Value) -> PostgresPolicyPlan {
        serde_json::from_value(json!({
            "apiVersion": "pgroles.io/v1alpha1", "kind": "PostgresPolicyPlan", "metadata": metadata,
            "spec": { "policyRef": { "name": "p" }, "policyGeneration": 1, "reconciliationMode": "authoritative",
                      "managedDatabaseIdentity": "1/2" },
            "status": status,
        }))
        .unwrap()
    }

    #[test]
    fn an_annotation_is_decided_by_its_manager() {
        let metadata = json!({
            "name": "x", "annotations": { "pgroles.io/approved": "true" },
            "managedFields": [
                { "manager": "stanchion-policy", "fieldsV1": { "f:metadata": { "f:labels": {} } } },
                { "manager": "kubectl-annotate",
                  "fieldsV1": { "f:metadata": { "f:annotations": { "f:pgroles.io/approved": {} } } } },
            ],
        });
        let Some(Decision::Approved(Author { who, .. })) = decision(&plan(&metadata, &json!({}))) else {
            panic!("not approved")
        };
        assert_eq!(who.username, "kubectl-annotate");
    }

    #[test]
    fn an_annotation_of_nobody_is_a_decision_all_the_same() {
        let fields = json!({ "f:metadata": { "f:annotations": { "f:pgroles.io/approved": {} } } });
        let metadata = json!({
            "name": "x", "annotations": { "pgroles.io/approved": "true" },
            "managedFields": [{ "manager": "", "fieldsV1": fields }],
        });
        let Some(Decision::Approved(Author { who, .. })) = decision(&plan(&metadata, &json!({}))) else {
            panic!("not approved")
        };
        assert_eq!(who.username, "unknown (annotation)");
    }

    #[test]
    fn no_beats_yes() {
        let metadata = json!({ "name": "x", "annotations": { "pgroles.io/approved": "true", "pgroles.io/rejected": "true" } });
        assert!(matches!(
            decision(&plan(&metadata, &json!({}))),
            Some(Decision::Rejected(_))
        ));
    }

    #[test]
    fn a_status_names_the_person() {
        let condition = json!({ "type": "Approved", "status": "True", "reason": "Fine", "message": "" });
        let status = json!({ "conditions": [condition], "decidedBy": { "username": "alice" } });
        let Some(Decision::Approved(Author { who, .. })) = decision(&plan(&json!({ "name": "x" }), &status))
        else {
            panic!("not approved")
        };
        assert_eq!(who.username, "alice");
    }

    #[test]
    fn silence_and_other_words_are_no_decision() {
        assert_eq!(decision(&plan(&json!({ "name": "x" }), &json!({}))), None);
        let metadata = json!({ "name": "x", "annotations": { "pgroles.io/approved": "false" } });
        assert_eq!(decision(&plan(&metadata, &json!({}))), None);
    }
}
