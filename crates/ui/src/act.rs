//! Approves or rejects a plan as the user, with the annotation that `kubectl annotate` sets; and reads a plan's SQL.

use std::io::Read as _;

use flate2::read::GzDecoder;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use stanchion_api::policy::annotation;
use stanchion_fleet::cluster::{Cluster, Unreadable, printable};
use stanchion_fleet::redact;

use crate::server::Place;

/// Without the webhook, the plan's status names this manager as the person who decided.
const MANAGER: &str = "stanchion-ui";
/// The longest SQL that is shown, in bytes: more is no longer read by anybody.
const LONGEST: u64 = 2 * 1024 * 1024;

/// A decision about a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    Approve,
    Reject,
}

impl Decision {
    pub(crate) fn parse(word: &str) -> Option<Self> {
        match word {
            "approve" => Some(Self::Approve),
            "reject" => Some(Self::Reject),
            _ => None,
        }
    }

    fn annotation(self) -> &'static str {
        match self {
            Self::Approve => annotation::APPROVED,
            Self::Reject => annotation::REJECTED,
        }
    }

    fn verb(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Reject => "reject",
        }
    }
}

/// Why the API server refused a decision.
pub(crate) struct Refused {
    pub(crate) why: Unreadable,
    pub(crate) text: String,
}

/// Sets the annotation, if the plan is still the one that the user has seen. What a plan contains never changes.
pub(crate) async fn decide(
    cluster: &Cluster,
    place: &Place,
    decision: Decision,
    uid: &str,
) -> Result<(), Refused> {
    let patch = json!({ "metadata": { "uid": uid, "annotations": { (decision.annotation()): "true" } } });
    let parameters = PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let api = cluster.api(&place.kind.resource);
    let sent = async {
        // The server's own words are lost in an `Unreadable`.
        Ok(api.patch(&place.name, &parameters, &Patch::Merge(patch)).await)
    };
    let error = match cluster.ask(sent).await {
        Ok(Ok(_)) => return Ok(()),
        Ok(Err(error)) => error,
        Err(why) => return Err(refused(place, decision, why, "")),
    };
    let words = match &error {
        kube::Error::Api(status) => printable(&status.message),
        _ => String::new(),
    };
    Err(refused(place, decision, Unreadable::of(&error), &words))
}

fn refused(place: &Place, decision: Decision, why: Unreadable, words: &str) -> Refused {
    let verb = decision.verb();
    let plan = format!("{}/{}", place.namespace, place.name);
    let what = match &why {
        Unreadable::Forbidden => format!(
            "You may not {verb} the plan {plan}: your user lacks the permission to patch postgrespolicyplans in the \
             namespace {}. Nothing was changed.",
            place.namespace
        ),
        Unreadable::NotServed => format!("The plan {plan} does not exist any longer. Nothing was changed."),
        Unreadable::Failed(why) => format!("The cluster did not {verb} the plan {plan}: {}", printable(why)),
    };
    let text = match &why {
        Unreadable::Failed(_) => what,
        _ if words.is_empty() => what,
        _ => format!("{what} The API server says: {}", redact::text(words)),
    };
    Refused { why, text }
}

/// The SQL of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sql {
    pub(crate) text: String,
    /// Why it is missing or incomplete.
    pub(crate) note: Option<String>,
}

/// Reads the SQL of a plan: from its status, or from the `ConfigMap` that its status names.
pub(crate) async fn sql(cluster: &Cluster, plan: &Value) -> Sql {
    let text = |pointer: &str| plan.pointer(pointer).and_then(Value::as_str);
    if let Some(inline) = text("/status/sqlInline") {
        let cut = plan.pointer("/status/sqlTruncated").and_then(Value::as_bool) == Some(true);
        return Sql {
            text: redact::text(inline),
            note: cut.then(|| "Only the beginning fits into the status of the plan.".to_owned()),
        };
    }
    let Some((name, key)) = text("/status/sqlRef/name").zip(text("/status/sqlRef/key")) else {
        return Sql {
            note: Some("The plan has no SQL.".to_owned()),
            ..Sql::default()
        };
    };
    let namespace = cluster.namespace.as_deref().unwrap_or_default();
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), namespace);
    let map = match cluster.ask(maps.get(name)).await {
        Ok(map) => map,
        Err(why) => {
            let why = match why {
                Unreadable::Forbidden => "you may not get it".to_owned(),
                Unreadable::NotServed => "it does not exist".to_owned(),
                Unreadable::Failed(why) => printable(&why),
            };
            return Sql {
                note: Some(format!("The SQL is in the ConfigMap {namespace}/{name}: {why}.")),
                ..Sql::default()
            };
        }
    };
    let stored = map.binary_data.unwrap_or_default().remove(key);
    unpacked(&stored.map(|bytes| bytes.0).unwrap_or_default())
}

/// Unpacks SQL, but not more than is shown: a small archive can be large inside.
fn unpacked(stored: &[u8]) -> Sql {
    let mut bytes = Vec::new();
    let read = GzDecoder::new(stored).take(LONGEST + 1).read_to_end(&mut bytes);
    if let Err(error) = read {
        return Sql {
            note: Some(format!("The stored SQL cannot be unpacked: {error}.")),
            ..Sql::default()
        };
    }
    let longest = usize::try_from(LONGEST).unwrap_or(usize::MAX);
    let is_cut = bytes.len() > longest;
    bytes.truncate(longest);
    Sql {
        text: redact::text(&String::from_utf8_lossy(&bytes)),
        note: is_cut.then(|| "Only the first 2 MiB are shown.".to_owned()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn packed(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn stored_sql_is_unpacked_up_to_a_limit() {
        assert_eq!(unpacked(&packed("SELECT 1;")).text, "SELECT 1;");
        let bomb = unpacked(&packed(&"x".repeat(20 * 1024 * 1024)));
        assert_eq!(bomb.text.len(), 2 * 1024 * 1024);
        assert!(bomb.note.unwrap().contains("first 2 MiB"));
        assert!(
            unpacked(b"no archive")
                .note
                .unwrap()
                .contains("cannot be unpacked")
        );
    }

    #[test]
    fn a_refusal_says_what_is_missing() {
        let place = Place::of("postgrespolicyplans", "shop", "stock-1").unwrap();
        let said = refused(&place, Decision::Approve, Unreadable::Forbidden, "no password=x");
        assert!(
            said.text
                .contains("patch postgrespolicyplans in the namespace shop")
                && said.text.contains("Nothing was changed"),
            "{}",
            said.text
        );
        assert!(!said.text.contains("password=x"), "{}", said.text);
    }
}
