//! Approves or rejects a plan as the user, with the annotation that `kubectl annotate` sets; and reads a plan's SQL.

use std::io::Read as _;

use aws_lc_rs::digest::{Context, SHA256};
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
    /// Whether what is stored is not what the operator has computed: then nobody may decide on it.
    pub(crate) is_altered: bool,
}

impl Sql {
    fn missing(note: String) -> Self {
        Self {
            note: Some(note),
            ..Self::default()
        }
    }

    fn altered() -> Self {
        Self {
            is_altered: true,
            ..Self::default()
        }
    }
}

/// Reads the SQL of a plan: from its status, or from the `ConfigMap` that its status names. Others may be able to write
/// that `ConfigMap`, so its content has to have the hash in the status.
pub(crate) async fn sql(cluster: &Cluster, plan: &Value) -> Sql {
    let text = |pointer: &str| plan.pointer(pointer).and_then(Value::as_str);
    if let Some(inline) = text("/status/sqlInline") {
        let cut = plan.pointer("/status/sqlTruncated").and_then(Value::as_bool) == Some(true);
        return Sql {
            text: redact::text(inline),
            note: cut.then(|| "Only the beginning fits into the status of the plan.".to_owned()),
            ..Sql::default()
        };
    }
    let Some((name, key)) = text("/status/sqlRef/name").zip(text("/status/sqlRef/key")) else {
        return Sql::missing("The plan has no SQL.".to_owned());
    };
    let namespace = cluster.namespace.as_deref().unwrap_or_default();
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), namespace);
    let map = match cluster.get(&maps, name).await {
        Ok(map) => map,
        Err(why) => {
            let why = match why {
                Unreadable::Forbidden => "you may not get it".to_owned(),
                Unreadable::NotServed => "it does not exist".to_owned(),
                Unreadable::Failed(why) => printable(&why),
            };
            return Sql::missing(format!("The SQL is in the ConfigMap {namespace}/{name}: {why}."));
        }
    };
    let stored = map.binary_data.unwrap_or_default().remove(key);
    let size = plan.pointer("/status/sqlOriginalBytes").and_then(Value::as_u64);
    unpacked(
        &stored.map(|bytes| bytes.0).unwrap_or_default(),
        size.unwrap_or_default(),
        text("/status/redactedSqlHash").unwrap_or_default(),
    )
}

/// Unpacks SQL of this size and with this hash, but keeps only what is shown: a small archive can be large inside.
fn unpacked(stored: &[u8], size: u64, hash: &str) -> Sql {
    let longest = usize::try_from(LONGEST).unwrap_or(usize::MAX);
    // One byte more than expected is enough to see that it is not the plan's.
    let mut unpacker = GzDecoder::new(stored).take(size.saturating_add(1));
    let (mut digest, mut shown, mut is_cut) = (Context::new(&SHA256), Vec::new(), false);
    let mut part = vec![0; 64 * 1024];
    loop {
        let bytes = match unpacker.read(&mut part) {
            Ok(0) => break,
            Ok(length) => part.get(..length).unwrap_or_default(),
            Err(_) => return Sql::altered(),
        };
        digest.update(bytes);
        let room = bytes.len().min(longest - shown.len());
        is_cut |= room < bytes.len();
        shown.extend_from_slice(bytes.get(..room).unwrap_or_default());
    }
    let found = hex(digest.finish().as_ref());
    if found != hash {
        return Sql::altered();
    }
    Sql {
        text: redact::text(&String::from_utf8_lossy(&shown)),
        note: is_cut.then(|| "Only the first 2 MiB are shown.".to_owned()),
        ..Sql::default()
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
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

    /// What the operator stores, with its size and its hash.
    fn kept(text: &str) -> (Vec<u8>, u64, String) {
        let digest = aws_lc_rs::digest::digest(&SHA256, text.as_bytes());
        let hash = hex(digest.as_ref());
        (packed(text), text.len() as u64, hash)
    }

    #[test]
    fn stored_sql_is_unpacked_up_to_a_limit() {
        let (stored, size, hash) = kept("SELECT 1;");
        assert_eq!(unpacked(&stored, size, &hash).text, "SELECT 1;");
        let (stored, size, hash) = kept(&"x".repeat(20 * 1024 * 1024));
        let long = unpacked(&stored, size, &hash);
        assert_eq!(long.text.len(), 2 * 1024 * 1024);
        assert!(long.note.unwrap().contains("first 2 MiB"));
    }

    #[test]
    fn stored_sql_that_is_not_the_plans_is_not_shown() {
        let (_, size, hash) = kept("SELECT 1;");
        let (bomb, ..) = kept(&"x".repeat(1024 * 1024));
        let (longer, ..) = kept("SELECT 1;\nDROP ROLE \"admin\";");
        for other in [
            packed("SELECT 2;"),
            longer,
            bomb,
            b"no archive".to_vec(),
            Vec::new(),
        ] {
            assert_eq!(unpacked(&other, size, &hash), Sql::altered());
        }
        assert_eq!(unpacked(&packed("SELECT 1;"), size, ""), Sql::altered());
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
