//! Decides whether a child has to be written: a pure comparison of the intent with the live object.
//!
//! Children are written with server-side apply, with one field manager per controller. The write is skipped if the
//! intent has not changed since the last write (its hash is an annotation, so it survives a restart) and no one has
//! changed the fields that we wrote. Values of Secrets are compared, and never hashed into an annotation.

mod change;
mod compare;
mod hash;
mod intent;
mod managed_fields;

use std::time::Duration;

use kube::core::ObjectMeta;
use serde::Serialize;

pub use self::change::{ObjectChange, Observed, Written};
use self::compare::contains;
pub(crate) use self::compare::quantity;
pub(crate) use self::intent::annotated;
pub use self::intent::{INTENT, Intent};
pub(crate) use self::managed_fields::adopt_fields;
use crate::context::Parent;
use crate::problem::{Problem, Retry};

/// Retry interval while an object of another owner is in the way.
const FOREIGN: Duration = Duration::from_secs(30);

/// The annotation on an object without a controller that names the owner which may adopt it.
pub const ADOPT: &str = "stanchion.dev/adopt-by";

/// Whether an existing object that the subject does not control may be taken over. An object without a controller whose
/// annotation [`ADOPT`] names the subject may always be adopted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takeover {
    /// Only an object that the subject controls.
    Refuse,
    /// Also an object without a controller: the user asked for it, or it is known to be a predecessor's.
    Adopt,
    /// As [`Takeover::Refuse`], and fields that a predecessor has set and that are not intended are removed.
    AdoptFields,
}

/// Decides whether to write: `Ok(None)` if the child is as intended.
pub fn decide<K: Serialize + kube::Resource>(
    intent: Intent,
    live: Option<&K>,
    parent: &Parent,
    takeover: Takeover,
) -> Result<Option<Intent>, Problem> {
    let Some(live) = live else { return Ok(Some(intent)) };
    check_owner(intent.kind(), live.meta(), parent, takeover)?;
    let uid = live.meta().uid.clone().unwrap_or_default();
    let live = serde_json::to_value(live)
        .map_err(|error| Problem::human("UnreadableAnswer", "a child could not be read").caused_by(error))?;
    let same_intent = annotated(&live) == intent.hash();
    if same_intent && contains(&live, intent.body()) {
        return Ok(None);
    }
    Ok(Some(intent.over(&uid)))
}

/// Whether the subject controls this object.
pub fn is_owned(meta: &ObjectMeta, parent: &Parent) -> bool {
    meta.owner_references
        .iter()
        .flatten()
        .any(|owner| owner.uid == parent.uid && owner.controller == Some(true))
}

fn check_owner(kind: &str, meta: &ObjectMeta, parent: &Parent, takeover: Takeover) -> Result<(), Problem> {
    let controller = meta
        .owner_references
        .iter()
        .flatten()
        .find(|owner| owner.controller == Some(true));
    let name = meta.name.as_deref().unwrap_or_default();
    let (ours, owner) = (&parent.owner, &parent.owner.name);
    let consents = || meta.annotations.as_ref().and_then(|all| all.get(ADOPT)) == Some(owner);
    let may_adopt = || takeover == Takeover::Adopt || consents();
    if is_owned(meta, parent) || (controller.is_none() && may_adopt()) {
        return Ok(());
    }
    if controller.is_some_and(|it| it.kind == ours.kind && it.name == ours.name) {
        return Err(Problem::dependency(
            "PredecessorLeaving",
            format!(
                "{kind} {name} still belongs to an earlier {} {owner} and goes away with it",
                ours.kind
            ),
        ));
    }
    Err(Problem::human(
        "NotOurs",
        format!(
            "{kind} {name} exists and does not belong to {} {owner}; delete it or choose another name{}",
            ours.kind,
            if controller.is_none() {
                format!(", or let it be adopted: kubectl annotate {kind} {name} {ADOPT}={owner}")
            } else {
                String::new()
            }
        ),
    )
    // It may not have our label, so the watches may not report its deletion.
    .with_retry(Retry::After(FOREIGN)))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::*;
    use crate::problem::Class;
    use crate::watch::dependencies::Key;

    fn parent(uid: &str) -> Parent {
        Parent {
            key: Key {
                namespace: "ns".into(),
                name: "one".into(),
            },
            uid: uid.into(),
            owner: OwnerReference {
                api_version: "test.stanchion.dev/v1".into(),
                kind: "Widget".into(),
                name: "one".into(),
                uid: uid.into(),
                controller: Some(true),
                block_owner_deletion: Some(true),
            },
        }
    }

    fn map(data: &Value) -> Value {
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "child" }, "data": data })
    }

    fn secret(field: &str, data: &Value) -> Value {
        let mut secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "child" } });
        secret[field] = data.clone();
        secret
    }

    fn intent(child: &Value) -> Intent {
        Intent::new(child, &parent("a")).unwrap()
    }

    /// The child as the server stores it after this intent, with a change.
    fn live<K: DeserializeOwned>(intent: &Intent, change: impl FnOnce(&mut Value)) -> K {
        let mut body = intent.body().clone();
        body["metadata"]["uid"] = json!("uid of the child");
        body["metadata"]["labels"]["added"] = json!("by somebody");
        change(&mut body);
        serde_json::from_value(body).unwrap()
    }

    fn decided<K>(wanted: &Value, live: &K, takeover: Takeover) -> Result<Option<Intent>, Problem>
    where
        K: Serialize + kube::Resource<DynamicType = ()>,
    {
        decide(intent(wanted), Some(live), &parent("a"), takeover)
    }

    #[test]
    fn what_is_as_intended_is_left_alone() {
        let wanted = map(&json!({ "size": "1" }));
        let there: ConfigMap = live(&intent(&wanted), |_| {});
        assert_eq!(decided(&wanted, &there, Takeover::Refuse).unwrap(), None);
    }

    #[test]
    fn a_new_child_is_written_without_force_and_a_known_one_by_its_uid() {
        let wanted = map(&json!({ "size": "2" }));
        let new = decide::<ConfigMap>(intent(&wanted), None, &parent("a"), Takeover::Refuse)
            .unwrap()
            .unwrap();
        assert!(!new.replaces());
        assert_eq!(new.patch().pointer("/metadata/uid"), None);
        assert_eq!(
            new.patch().pointer("/metadata/resourceVersion"),
            Some(&json!("1"))
        );
        let there: ConfigMap = live(&intent(&map(&json!({ "size": "1" }))), |_| {});
        let known = decided(&wanted, &there, Takeover::Refuse).unwrap().unwrap();
        assert!(known.replaces());
        assert_eq!(
            known.patch().pointer("/metadata/uid"),
            Some(&json!("uid of the child"))
        );
    }

    #[test]
    fn a_field_that_is_no_longer_intended_is_written_away() {
        let before = map(&json!({ "size": "1", "old": "x" }));
        let there: ConfigMap = live(&intent(&before), |_| {});
        let decision = decided(&map(&json!({ "size": "1" })), &there, Takeover::Refuse);
        assert!(decision.unwrap().is_some(), "only the hash shows it");
    }

    #[test]
    fn what_others_did_to_our_fields_is_repaired() {
        let wanted = map(&json!({ "size": "1" }));
        let changes: [fn(&mut Value); 4] = [
            |body| body["data"]["size"] = json!("2"),
            |body| body["data"] = json!({}),
            |body| body["metadata"]["labels"] = json!({}),
            |body| body["metadata"]["annotations"] = json!({}),
        ];
        for change in changes {
            let there: ConfigMap = live(&intent(&wanted), change);
            assert!(
                decided(&wanted, &there, Takeover::Refuse).unwrap().is_some(),
                "{there:?}"
            );
        }
    }

    #[test]
    fn a_secret_is_compared_by_value_and_its_values_are_in_no_annotation() {
        let hash = |wanted: &Value| annotated(intent(wanted).body()).unwrap().to_owned();
        let (one, two) = (json!({ "password": "MQ==" }), json!({ "password": "Mg==" }));
        assert_eq!(hash(&secret("data", &one)), hash(&secret("data", &two)));
        let there: Secret = live(&intent(&secret("data", &one)), |_| {});
        assert_eq!(
            decided(&secret("data", &one), &there, Takeover::Refuse).unwrap(),
            None
        );
        assert!(
            decided(&secret("data", &two), &there, Takeover::Refuse)
                .unwrap()
                .is_some()
        );
        // In clear text it is the same Secret, and not one that always looks changed.
        let clear = secret("stringData", &json!({ "password": "1" }));
        assert_eq!(decided(&clear, &there, Takeover::Refuse).unwrap(), None);
    }

    #[test]
    fn whose_child_it_is_decides_whether_it_may_be_written() {
        let wanted = map(&json!({ "size": "1" }));
        let owner = |name: &str, uid: &str| json!([{ "apiVersion": "test.stanchion.dev/v1", "kind": "Widget", "name": name, "uid": uid, "controller": true }]);
        // The controller of the object; the expected problem without and with adoption.
        let cases = [
            (json!([]), Some((Class::Human, "NotOurs")), None),
            (
                owner("two", "b"),
                Some((Class::Human, "NotOurs")),
                Some((Class::Human, "NotOurs")),
            ),
            (
                owner("one", "earlier"),
                Some((Class::Dependency, "PredecessorLeaving")),
                Some((Class::Dependency, "PredecessorLeaving")),
            ),
            (owner("one", "a"), None, None),
        ];
        for (owners, refused, adopted) in cases {
            let there: ConfigMap = live(&intent(&wanted), |body| {
                body["metadata"]["ownerReferences"] = owners;
            });
            for (takeover, expected) in [(Takeover::Refuse, refused), (Takeover::Adopt, adopted)] {
                let found = decided(&wanted, &there, takeover)
                    .err()
                    .map(|problem| (problem.class, problem.reason));
                assert_eq!(found, expected, "{takeover:?}: {there:?}");
            }
        }
    }

    #[test]
    fn an_object_that_nobody_controls_is_adopted_where_it_says_so() {
        let wanted = map(&json!({ "size": "1" }));
        let there = |adopt: Option<&str>| -> ConfigMap {
            live(&intent(&wanted), |body| {
                body["metadata"]["ownerReferences"] = json!([]);
                if let Some(name) = adopt {
                    body["metadata"]["annotations"][ADOPT] = json!(name);
                }
            })
        };
        for takeover in [Takeover::Refuse, Takeover::AdoptFields] {
            let problem = decided(&wanted, &there(None), takeover).unwrap_err();
            assert_eq!(problem.reason, "NotOurs");
            assert!(
                problem
                    .message
                    .ends_with("kubectl annotate ConfigMap child stanchion.dev/adopt-by=one")
            );
            assert!(
                decided(&wanted, &there(Some("two")), takeover).is_err(),
                "somebody else's"
            );
            assert!(decided(&wanted, &there(Some("one")), takeover).is_ok());
        }
        // Its controller has not set the annotation.
        let theirs: ConfigMap = live(&intent(&wanted), |body| {
            body["metadata"]["ownerReferences"][0]["uid"] = json!("b");
            body["metadata"]["ownerReferences"][0]["name"] = json!("two");
            body["metadata"]["annotations"][ADOPT] = json!("one");
        });
        assert!(decided(&wanted, &theirs, Takeover::AdoptFields).is_err());
    }
}
