//! The person who decided about a plan, by the name that the API server has authenticated.
//!
//! A field manager is a name that a client chooses. The webhook sees the authenticated user of the request that approves
//! or rejects a plan, and writes that name beside the decision, with a seal under the installation's key over the plan,
//! the decision and the name. The controller accepts a name whose seal is valid. While the webhook does not answer, a
//! decision counts as before, and its author is the field manager.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::ResourceExt;
use kube::core::DynamicObject;
use serde_json::{Value, json};
use stanchion_api::PostgresPolicyPlan;
use stanchion_api::policy::annotation;
use stanchion_kernel::admission::{Operation, Request, Webhook, WebhookTarget};
use stanchion_kernel::redact::{FingerprintKey, Verdict};

const PURPOSE: &str = "decision about a plan";
/// The longest name that a status holds.
const LONGEST: usize = 512;

/// The webhooks of this crate.
pub fn webhooks(key: &Arc<FingerprintKey>) -> Vec<Webhook> {
    let key = Arc::clone(key);
    // A new plan is the operator's own, and has no uid yet.
    let target = WebhookTarget {
        operations: vec![Operation::Update],
        ..WebhookTarget::of::<PostgresPolicyPlan>()
    };
    vec![Webhook::mutating(target, move |request| {
        let operations = record(&key, request);
        Ok(serde_json::from_value(Value::Array(operations)).unwrap_or_default())
    })]
}

/// What was decided, by the annotation that says so.
fn decided(annotations: &BTreeMap<String, String>) -> Option<&'static str> {
    [annotation::REJECTED, annotation::APPROVED]
        .into_iter()
        .find(|word| annotations.get(*word).is_some_and(|value| value == "true"))
}

/// The operations that write the author beside a new decision, and leave an older one as it was.
fn record(key: &FingerprintKey, request: &Request) -> Vec<Value> {
    let Some(new) = &request.object else {
        return Vec::new();
    };
    let nothing = BTreeMap::new();
    let before = request
        .old_object
        .as_ref()
        .map_or(&nothing, ResourceExt::annotations);
    let after = new.annotations();
    let decision = decided(after);
    let wanted = match decision {
        None => None,
        Some(_) if decision == decided(before) => before.get(annotation::DECIDED_BY).cloned(),
        Some(word) => {
            let user = request.user_info.username.as_deref().unwrap_or_default();
            (!user.is_empty() && user.len() <= LONGEST).then(|| sealed(key, new, word, user))
        }
    };
    let path = format!(
        "/metadata/annotations/{}",
        annotation::DECIDED_BY.replace('/', "~1")
    );
    match (after.get(annotation::DECIDED_BY), wanted) {
        (found, wanted) if found == wanted.as_ref() => Vec::new(),
        (_, Some(wanted)) => vec![json!({ "op": "add", "path": path, "value": wanted })],
        (_, None) => vec![json!({ "op": "remove", "path": path })],
    }
}

/// `SEAL NAME`.
fn sealed(key: &FingerprintKey, plan: &DynamicObject, word: &str, user: &str) -> String {
    format!(
        "{} {user}",
        key.mac(PURPOSE, &parts(plan, word, user).each_ref().map(String::as_str))
    )
}

fn parts<K: ResourceExt>(plan: &K, word: &str, user: &str) -> [String; 5] {
    [
        plan.namespace().unwrap_or_default(),
        plan.name_any(),
        plan.uid().unwrap_or_default(),
        word.to_owned(),
        user.to_owned(),
    ]
}

/// The author of the decision that an annotation of the plan says, if the webhook has written it.
pub(super) fn author(key: &FingerprintKey, plan: &PostgresPolicyPlan, word: &str) -> Option<String> {
    let (seal, user) = plan.annotations().get(annotation::DECIDED_BY)?.split_once(' ')?;
    let parts = parts(plan, word, user);
    let verdict = key.verify(seal, PURPOSE, &parts.each_ref().map(String::as_str));
    (verdict == Verdict::Same).then(|| user.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const APPROVED: &str = annotation::APPROVED;

    fn plan(uid: &str, annotations: &Value) -> Value {
        json!({
            "apiVersion": "pgroles.io/v1alpha1", "kind": "PostgresPolicyPlan",
            "metadata": { "name": "p", "namespace": "ns", "uid": uid, "annotations": annotations },
            "spec": { "policyRef": { "name": "p" }, "policyGeneration": 1, "reconciliationMode": "authoritative",
                      "managedDatabaseIdentity": "1/2" },
        })
    }

    fn asked(user: &str, old: &Value, new: &Value) -> Vec<Value> {
        let kind = json!({ "group": "pgroles.io", "version": "v1alpha1", "kind": "PostgresPolicyPlan" });
        let resource =
            json!({ "group": "pgroles.io", "version": "v1alpha1", "resource": "postgrespolicyplans" });
        let request = json!({
            "uid": "1", "kind": kind, "resource": resource, "name": "p", "operation": "UPDATE",
            "userInfo": { "username": user }, "object": plan("u", new), "oldObject": plan("u", old),
        });
        record(&key(), &serde_json::from_value(request).unwrap())
    }

    fn key() -> FingerprintKey {
        FingerprintKey::from_bytes(&[7; 32]).unwrap()
    }

    fn named(uid: &str, annotations: &Value) -> Option<String> {
        author(
            &key(),
            &serde_json::from_value(plan(uid, annotations)).unwrap(),
            APPROVED,
        )
    }

    #[test]
    fn the_name_is_the_authenticated_one() {
        let yes = json!({ APPROVED: "true" });
        let forged = json!({ APPROVED: "true", annotation::DECIDED_BY: "v1.x.y boss" });
        for new in [&yes, &forged] {
            let operations = asked("alice", &json!({}), new);
            let value = operations[0]["value"].clone();
            let written = json!({ APPROVED: "true", annotation::DECIDED_BY: value });
            assert_eq!(named("u", &written).as_deref(), Some("alice"));
            // Nobody can move it to another plan, or change the name.
            assert_eq!(named("other", &written), None);
            let other = value.as_str().unwrap().replace("alice", "boss");
            assert_eq!(
                named("u", &json!({ APPROVED: "true", annotation::DECIDED_BY: other })),
                None
            );
            // Somebody else who changes the plan later leaves it as it is.
            assert_eq!(asked("bob", &written, &written), Vec::<Value>::new());
            assert_eq!(asked("bob", &written, &forged)[0]["value"], value);
            assert_eq!(asked("bob", &written, &yes)[0]["value"], value);
        }
        assert_eq!(named("u", &forged), None);
    }

    #[test]
    fn without_a_decision_there_is_no_author() {
        let claim = json!({ annotation::DECIDED_BY: "v1.x.y boss" });
        assert_eq!(asked("bob", &json!({}), &claim)[0]["op"], "remove");
        assert_eq!(asked("bob", &json!({}), &json!({})), Vec::<Value>::new());
        assert_eq!(
            asked("", &json!({}), &json!({ APPROVED: "true" })),
            Vec::<Value>::new()
        );
    }

    #[test]
    fn another_decision_has_another_author() {
        let yes = asked("alice", &json!({}), &json!({ APPROVED: "true" }))[0]["value"].clone();
        let approved = json!({ APPROVED: "true", annotation::DECIDED_BY: yes });
        let both = json!({ APPROVED: "true", annotation::REJECTED: "true", annotation::DECIDED_BY: yes });
        let no = asked("bob", &approved, &both)[0]["value"].clone();
        assert!(no.as_str().unwrap().ends_with(" bob"));
    }
}
