//! All details of one object: a pure function of what was read.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::assess::{self, Row, list, time};
use crate::cluster::printable;
use crate::read::{Gathered, Unread};

/// Number of events, the newest last.
const EVENTS: usize = 10;

/// Facts in a status, in addition to conditions: their paths and titles.
const FACTS: &[(&str, &str)] = &[
    ("/status/message", "message"),
    ("/status/host", "host"),
    ("/status/endpoints/api", "api"),
    ("/status/observedVersion", "version"),
    ("/status/targetVersion", "target version"),
    ("/status/chartVersion", "chart"),
    ("/status/version", "PostgreSQL"),
    ("/status/provisionedUsername", "role"),
    ("/status/provisionedDatabase", "database"),
    ("/status/instance", "server"),
    ("/status/credentialsSecretName", "Secret"),
    ("/status/managed_database_identity", "database identity"),
    ("/status/current_plan_ref/name", "plan"),
    ("/status/last_error", "last error"),
    ("/status/keys/rotatedAt", "keys rotated at"),
    ("/status/keys/previousUntil", "old keys accepted until"),
];

/// A condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Condition {
    /// The type.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    pub reason: String,
    pub message: String,
    /// The last transition.
    pub since: Option<Timestamp>,
    /// Time since the last transition.
    #[serde(skip)]
    pub held: String,
}

/// A part of the object: a component, or a dependency.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Part {
    pub name: String,
    /// Whether it works.
    pub ok: bool,
    /// Its state in a few words.
    pub state: String,
    /// Why it does not work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Event {
    /// When it last occurred.
    pub time: Option<Timestamp>,
    /// Time since then.
    #[serde(skip)]
    pub ago: String,
    /// `Normal` or `Warning`.
    #[serde(rename = "type")]
    pub kind: String,
    pub reason: String,
    /// The message.
    pub note: String,
    /// How often it occurred.
    pub count: i64,
}

/// A child.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Child {
    pub kind: String,
    pub name: String,
    /// Time since its creation.
    #[serde(skip)]
    pub age: String,
}

/// All details of one object.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Detail {
    /// Its line in the table.
    #[serde(flatten)]
    pub row: Row,
    /// Facts of its status: title and value.
    pub facts: Vec<(String, String)>,
    /// The versions that are still to be installed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub upgrade_path: Vec<String>,
    pub conditions: Vec<Condition>,
    pub components: Vec<Part>,
    /// The services that it uses.
    pub dependencies: Vec<Part>,
    /// The objects that it owns.
    pub children: Vec<Child>,
    /// Its last events, the newest last.
    pub events: Vec<Event>,
    /// What could not be read.
    pub unreadable: Vec<Unread>,
}

/// Collects the details.
pub fn of(gathered: &Gathered, now: Timestamp) -> Detail {
    let object = &gathered.object;
    let row = assess::row(&gathered.kind, object, now, true);
    let text = |value: &Value, field: &str| {
        value
            .get(field)
            .and_then(Value::as_str)
            .map(printable)
            .unwrap_or_default()
    };
    let ago = |time: Option<Timestamp>| time.map(|time| assess::duration(time, now)).unwrap_or_default();
    let conditions = list(object.pointer("/status/conditions")).map(|condition| {
        let since = time(condition.get("lastTransitionTime"));
        Condition {
            kind: text(condition, "type"),
            status: text(condition, "status"),
            reason: text(condition, "reason"),
            message: text(condition, "message"),
            since,
            held: ago(since),
        }
    });
    let facts = FACTS.iter().filter_map(|(pointer, name)| {
        let value = object.pointer(pointer)?.as_str()?;
        Some(((*name).to_owned(), printable(value)))
    });
    let mut events: Vec<Event> = gathered
        .events
        .iter()
        .map(|event| {
            let last = time(event.pointer("/series/lastObservedTime"));
            let first = last.or_else(|| time(event.get("eventTime")));
            let time = first.or_else(|| time(event.get("deprecatedLastTimestamp")));
            Event {
                time,
                ago: ago(time),
                kind: text(event, "type"),
                reason: text(event, "reason"),
                note: text(event, "note"),
                count: event
                    .pointer("/series/count")
                    .and_then(Value::as_i64)
                    .unwrap_or(1),
            }
        })
        .collect();
    events.sort_by_key(|event| event.time);
    let older = events.len().saturating_sub(EVENTS);
    events.drain(..older);
    let mut children: Vec<Child> = gathered
        .children
        .iter()
        .map(|(kind, metadata)| Child {
            kind: kind.clone(),
            name: text(metadata, "name"),
            age: ago(time(metadata.get("creationTimestamp"))),
        })
        .collect();
    children.sort_by(|a, b| (&a.kind, &a.name).cmp(&(&b.kind, &b.name)));
    Detail {
        facts: facts.collect(),
        upgrade_path: list(object.pointer("/status/upgradePath"))
            .filter_map(Value::as_str)
            .map(printable)
            .collect(),
        conditions: conditions.collect(),
        components: parts(object.pointer("/status/components"), component),
        dependencies: parts(object.pointer("/status/dependencies"), dependency),
        children,
        events,
        unreadable: gathered.unreadable.clone(),
        // An object of a kind with a status always has a row when it is requested by name.
        row: row.unwrap_or_else(|| assess::unknown(&gathered.kind)),
    }
}

fn parts(map: Option<&Value>, part: fn(&str, &Value) -> Part) -> Vec<Part> {
    let entries = map.and_then(Value::as_object).into_iter().flatten();
    entries
        .map(|(name, value)| part(&printable(name), value))
        .collect()
}

fn component(name: &str, value: &Value) -> Part {
    let number = |field: &str| value.get(field).and_then(Value::as_i64).unwrap_or_default();
    let phase = value.get("phase").and_then(Value::as_str).unwrap_or("Unknown");
    let version = value.get("version").and_then(Value::as_str).unwrap_or_default();
    Part {
        name: name.to_owned(),
        ok: value.get("ready").and_then(Value::as_bool).unwrap_or_default() || phase == "Stopped",
        state: printable(&format!(
            "{phase} {}/{} {version}",
            number("readyReplicas"),
            number("replicas")
        )),
        message: value.get("message").and_then(Value::as_str).map(printable),
    }
}

fn dependency(name: &str, value: &Value) -> Part {
    let connected = value
        .get("connected")
        .and_then(Value::as_bool)
        .unwrap_or_default();
    let latency = value.get("latencyMs").and_then(Value::as_i64);
    let state = match (connected, latency) {
        (true, Some(latency)) => format!("connected, {latency} ms"),
        (true, None) => "connected".to_owned(),
        (false, _) => "not connected".to_owned(),
    };
    Part {
        name: name.to_owned(),
        ok: connected,
        state,
        message: value.get("error").and_then(Value::as_str).map(printable),
    }
}
