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

/// Sets the annotation, if the plan is still the one that the user has seen. What a plan contains never changes. Nobody
/// approves SQL that the page cannot show.
pub(crate) async fn decide(
    cluster: &Cluster,
    place: &Place,
    decision: Decision,
    uid: &str,
) -> Result<(), Refused> {
    if decision == Decision::Approve {
        is_readable(cluster, place).await?;
    }
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

/// Reads the plan and its SQL again: the form may be older than the SQL that is stored now.
async fn is_readable(cluster: &Cluster, place: &Place) -> Result<(), Refused> {
    let api = cluster.api(&place.kind.resource);
    let plan = match cluster.get(&api, &place.name).await {
        Ok(plan) => serde_json::to_value(plan).map_err(|error| unread(place, &error.to_string()))?,
        Err(Unreadable::Forbidden) => return Err(unread(place, "You may not get the plan.")),
        Err(why) => return Err(refused(place, Decision::Approve, why, "")),
    };
    let sql = sql(cluster, &plan).await;
    sql.shown().map(drop).map_err(|why| unread(place, why))
}

fn unread(place: &Place, why: &str) -> Refused {
    let text = format!(
        "The plan {}/{} was not approved, because its SQL cannot be shown. {} Nothing was changed.",
        place.namespace,
        place.name,
        printable(why)
    );
    Refused {
        why: Unreadable::Failed(why.to_owned()),
        text,
    }
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

/// The SQL of a plan. The operator has replaced passwords in it. Nothing else may be taken out of it: the SQL is what a
/// person approves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sql {
    /// All of it.
    Whole(String),
    /// Its beginning, and why the rest is not shown.
    Cut { text: String, why: &'static str },
    /// It cannot be read, and why.
    Missing(String),
    /// What is stored is not what the operator has computed.
    Altered,
}

impl Sql {
    /// What can be shown of it, or why nothing can. Without it, nobody can approve the plan.
    pub(crate) fn shown(&self) -> Result<&str, &str> {
        match self {
            Self::Whole(text) | Self::Cut { text, .. } => Ok(text),
            Self::Missing(why) => Err(why),
            Self::Altered => Err(
                "The SQL in its ConfigMap is not what the operator computed: its hash differs from redactedSqlHash in \
                 the status of the plan. Find out who changed the ConfigMap, delete the plan, and let the operator \
                 compute it again.",
            ),
        }
    }
}

/// Reads the SQL of a plan: from its status, or from the `ConfigMap` that its status names. Others may be able to write
/// that `ConfigMap`, so its content has to have the hash in the status.
pub(crate) async fn sql(cluster: &Cluster, plan: &Value) -> Sql {
    let text = |pointer: &str| plan.pointer(pointer).and_then(Value::as_str);
    if let Some(inline) = text("/status/sqlInline") {
        let text = inline.to_owned();
        let is_cut = plan.pointer("/status/sqlTruncated").and_then(Value::as_bool) == Some(true);
        return if is_cut {
            let why = "Only the beginning fits into the status of the plan.";
            Sql::Cut { text, why }
        } else {
            Sql::Whole(text)
        };
    }
    let Some((name, key)) = text("/status/sqlRef/name").zip(text("/status/sqlRef/key")) else {
        return Sql::Missing("The status of the plan contains no SQL.".to_owned());
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
            let name = printable(name);
            return Sql::Missing(format!("The SQL is in the ConfigMap {namespace}/{name}: {why}."));
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
            Err(_) => return Sql::Altered,
        };
        digest.update(bytes);
        let room = bytes.len().min(longest - shown.len());
        is_cut |= room < bytes.len();
        shown.extend_from_slice(bytes.get(..room).unwrap_or_default());
    }
    let found = hex(digest.finish().as_ref());
    if found != hash {
        return Sql::Altered;
    }
    let text = String::from_utf8_lossy(&shown).into_owned();
    if is_cut {
        let why = "Only the first 2 MiB are shown.";
        Sql::Cut { text, why }
    } else {
        Sql::Whole(text)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "a test")]
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
        assert_eq!(unpacked(&stored, size, &hash), Sql::Whole("SELECT 1;".to_owned()));
        let (stored, size, hash) = kept(&"x".repeat(20 * 1024 * 1024));
        let Sql::Cut { text, why } = unpacked(&stored, size, &hash) else {
            panic!("it is longer than what is shown");
        };
        assert_eq!(text.len(), 2 * 1024 * 1024);
        assert!(why.contains("first 2 MiB"));
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
            assert_eq!(unpacked(&other, size, &hash), Sql::Altered);
        }
        assert_eq!(unpacked(&packed("SELECT 1;"), size, ""), Sql::Altered);
    }

    /// The comment of a role is the author's, and must not hide statements from the person who approves.
    #[test]
    fn nothing_in_the_sql_hides_what_follows() {
        let script = "COMMENT ON ROLE \"app\" IS '-----BEGIN PRIVATE KEY-----';\nGRANT \"admin\" TO \"app\";\n\
                      ALTER ROLE \"app\" SET \"app\".\"note\" TO 'password=x';\n";
        let (stored, size, hash) = kept(script);
        assert_eq!(unpacked(&stored, size, &hash), Sql::Whole(script.to_owned()));
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
