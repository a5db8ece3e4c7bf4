//! Evaluates the status of an object: a pure function.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::cluster::printable;
use crate::kinds::Kind;
use crate::plans::{PLAN, ReadyPolicies};

/// The state of an object. The order is that of the table: the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum State {
    /// It needs a person.
    Failed,
    /// It does not work, and the operator retries.
    NotReady,
    /// It is being deleted.
    Deleting,
    /// The operator has not reconciled it, or not its newest spec.
    Unknown,
    /// The operator is working on it.
    Reconciling,
    /// `spec.suspend` is set.
    Suspended,
    /// It matches its spec.
    Ready,
}

impl State {
    /// The word in the table.
    pub fn word(self) -> &'static str {
        match self {
            Self::Failed => "Failed",
            Self::NotReady => "NotReady",
            Self::Deleting => "Deleting",
            Self::Unknown => "Unknown",
            Self::Reconciling => "Reconciling",
            Self::Suspended => "Suspended",
            Self::Ready => "Ready",
        }
    }
}

/// One line of the table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// The kind, such as `PostgresUser`.
    pub kind: String,
    /// The plural name for kubectl.
    #[serde(skip)]
    pub plural: String,
    pub namespace: String,
    pub name: String,
    pub state: State,
    /// The phase in its status.
    pub phase: Option<String>,
    /// When it entered this state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Time since its creation.
    #[serde(skip)]
    pub age: String,
    /// Time in this state.
    #[serde(skip)]
    pub held: String,
    /// The reason of the condition that determines the state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What it waits for, from its status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    /// What the user can do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// What determines the state.
struct Verdict {
    state: State,
    since: Option<Timestamp>,
    reason: Option<String>,
    waits_for: Option<String>,
}

/// The row of an object. Finished plans are omitted unless the user asks for plans.
pub fn row(kind: &Kind, object: &Value, now: Timestamp, asked_for: bool) -> Option<Row> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).map(printable);
    let phase = text("/status/phase");
    let is_plan = kind.resource.kind == PLAN;
    if is_plan && !asked_for && !matches!(phase.as_deref(), Some("Pending" | "Failed" | "Applying")) {
        return None;
    }
    let verdict = if is_plan { plan(object) } else { verdict(object) };
    let namespace = text("/metadata/namespace").unwrap_or_default();
    let name = text("/metadata/name").unwrap_or_default();
    let made = time(object.pointer("/metadata/creationTimestamp"));
    let since = verdict.since.or(made);
    let mut row = Row {
        kind: kind.resource.kind.clone(),
        plural: kind.plural().to_owned(),
        namespace,
        name,
        state: verdict.state,
        phase,
        since,
        age: made.map(|made| duration(made, now)).unwrap_or_default(),
        held: since.map(|since| duration(since, now)).unwrap_or_default(),
        reason: verdict.reason,
        waits_for: verdict.waits_for,
        next: None,
    };
    row.next = next(&row, object);
    Some(row)
}

/// The rows of these objects, the worst first. Finished plans are omitted unless `asked` is their plural name. A plan that failed is
/// finished as soon as its policy is ready again.
pub fn rows(objects: &[(&Kind, &Value)], now: Timestamp, asked: Option<&str>) -> Vec<Row> {
    let kinds = objects
        .iter()
        .map(|(kind, object)| (kind.resource.kind.as_str(), *object));
    let policies = ReadyPolicies::of(kinds);
    let rows = objects.iter().filter_map(|(kind, object)| {
        let is_asked = asked == Some(kind.plural());
        let mut row = row(kind, object, now, is_asked)?;
        if row.kind == PLAN && row.state == State::Failed && policies.has_that_of(object) {
            (row.state, row.waits_for, row.next) = (State::Ready, None, None);
            return is_asked.then_some(row);
        }
        Some(row)
    });
    let mut rows: Vec<Row> = rows.collect();
    sort(&mut rows);
    rows
}

/// The worst first, then by kind, namespace and name.
pub fn sort(rows: &mut [Row]) {
    rows.sort_by(|a, b| {
        (a.state, &a.kind, &a.namespace, &a.name).cmp(&(b.state, &b.kind, &b.namespace, &b.name))
    });
}

fn verdict(object: &Value) -> Verdict {
    let of = |state, condition: Option<&Value>| Verdict {
        state,
        since: condition.and_then(|condition| time(condition.get("lastTransitionTime"))),
        reason: condition.and_then(|condition| word(condition, "reason")),
        waits_for: condition.and_then(|condition| word(condition, "message")),
    };
    if let Some(deleted) = time(object.pointer("/metadata/deletionTimestamp")) {
        let finalizers: Vec<&str> = list(object.pointer("/metadata/finalizers"))
            .filter_map(Value::as_str)
            .collect();
        let failing = [condition(object, "Stalled"), condition(object, "Reconciling")];
        let why = failing
            .into_iter()
            .flatten()
            .find(|condition| is(condition, "True"));
        let waits_for = why
            .and_then(|condition| word(condition, "message"))
            .unwrap_or_else(|| format!("its finalizers: {}", printable(&finalizers.join(", "))));
        return Verdict {
            state: State::Deleting,
            since: Some(deleted),
            reason: why.and_then(|condition| word(condition, "reason")),
            waits_for: Some(waits_for),
        };
    }
    // A PostgresInstance describes a server: it has Connected instead of Ready.
    let connected = condition(object, "Connected");
    let ready = condition(object, "Ready").or(connected);
    let (Some(ready), Some(_)) = (ready, object.get("status")) else {
        return Verdict {
            waits_for: Some("the operator, which has not reconciled it yet".to_owned()),
            ..of(State::Unknown, None)
        };
    };
    if object.pointer("/status/phase").and_then(Value::as_str) == Some("Suspended")
        || object.pointer("/spec/suspend").and_then(Value::as_bool) == Some(true)
    {
        return Verdict {
            waits_for: Some("a person who resumes it".to_owned()),
            ..of(State::Suspended, Some(ready))
        };
    }
    let generation = object.pointer("/metadata/generation").and_then(Value::as_i64);
    let observed = ["observedGeneration", "observed_generation"]
        .iter()
        .find_map(|field| object.get("status")?.get(field)?.as_i64());
    if generation.is_some() && observed.is_some() && observed != generation {
        return Verdict {
            waits_for: Some("the operator, which has not reconciled its newest spec yet".to_owned()),
            ..of(State::Unknown, Some(ready))
        };
    }
    let on = |kind| condition(object, kind).filter(|condition| is(condition, "True"));
    if let Some(stalled) = on("Stalled") {
        return of(State::Failed, Some(stalled));
    }
    if is(ready, "True") {
        return Verdict {
            waits_for: None,
            ..of(State::Ready, Some(ready))
        };
    }
    // A problem that passes by itself, or that waits for something; without a problem it is in progress.
    let phase = object.pointer("/status/phase").and_then(Value::as_str);
    let failed = phase == Some("Failed") || connected == Some(ready);
    let state = if failed {
        State::NotReady
    } else {
        State::Reconciling
    };
    of(state, on("Reconciling").or(Some(ready)))
}

/// A plan may wait for a decision.
fn plan(object: &Value) -> Verdict {
    let phase = object
        .pointer("/status/phase")
        .and_then(Value::as_str)
        .unwrap_or("Pending");
    let computed = object.pointer("/status/computedAt");
    let (state, waits_for) = match phase {
        "Pending" => (
            State::Reconciling,
            Some("a person who approves or rejects it".to_owned()),
        ),
        "Failed" => (
            State::Failed,
            object
                .pointer("/status/lastError")
                .and_then(Value::as_str)
                .map(printable),
        ),
        "Approved" | "Applying" => (State::Reconciling, None),
        _ => (State::Ready, None),
    };
    Verdict {
        state,
        since: time(computed),
        reason: None,
        waits_for,
    }
}

/// What the user can do now, as a command if there is one.
fn next(row: &Row, object: &Value) -> Option<String> {
    let Row {
        plural,
        namespace,
        name,
        ..
    } = row;
    let this = format!("-n {namespace} {plural}/{name}");
    match row.state {
        State::Ready => None,
        State::Suspended => {
            let unsuspend = r#"--type=merge -p '{"spec":{"suspend":false}}'"#;
            Some(format!("kubectl patch {this} {unsuspend}"))
        }
        State::Unknown => Some("stanchion doctor".to_owned()),
        _ if row.kind == PLAN && row.phase.as_deref() == Some("Pending") => {
            Some(format!("kubectl annotate {this} pgroles.io/approved=true"))
        }
        State::Failed | State::NotReady | State::Deleting => Some(format!("stanchion status {this}")),
        State::Reconciling => object
            .pointer("/status/current_plan_ref/name")
            .and_then(Value::as_str)
            .filter(|_| row.reason.as_deref() == Some("ApprovalRequired"))
            .map(|plan| {
                format!(
                    "stanchion status -n {namespace} postgrespolicyplans/{}",
                    printable(plan)
                )
            }),
    }
}

/// The condition of this type.
pub fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    list(object.pointer("/status/conditions")).find(|condition| condition["type"] == kind)
}

fn is(condition: &Value, status: &str) -> bool {
    condition["status"] == status
}

fn word(condition: &Value, field: &str) -> Option<String> {
    let text = condition.get(field)?.as_str()?;
    (!text.is_empty()).then(|| printable(text))
}

/// The elements of an array; empty if it is not an array.
pub fn list(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    value.and_then(Value::as_array).into_iter().flatten()
}

/// A time in the format of Kubernetes.
pub fn time(value: Option<&Value>) -> Option<Timestamp> {
    value?.as_str()?.parse().ok()
}

/// In kubectl's format: at most the two largest units.
pub fn duration(from: Timestamp, to: Timestamp) -> String {
    let seconds = to.as_second().saturating_sub(from.as_second()).max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    match () {
        () if seconds < 120 => format!("{seconds}s"),
        () if minutes < 10 => match seconds % 60 {
            0 => format!("{minutes}m"),
            rest => format!("{minutes}m{rest}s"),
        },
        () if hours < 3 => format!("{minutes}m"),
        () if hours < 8 => match minutes % 60 {
            0 => format!("{hours}h"),
            rest => format!("{hours}h{rest}m"),
        },
        () if hours < 48 => format!("{hours}h"),
        () if days < 8 => match hours % 24 {
            0 => format!("{days}d"),
            rest => format!("{days}d{rest}h"),
        },
        () => format!("{days}d"),
    }
}

/// The row of an object without a known state.
pub fn unknown(kind: &Kind) -> Row {
    Row {
        kind: kind.resource.kind.clone(),
        plural: kind.plural().to_owned(),
        namespace: String::new(),
        name: String::new(),
        state: State::Unknown,
        phase: None,
        since: None,
        age: String::new(),
        held: String::new(),
        reason: None,
        waits_for: None,
        next: None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::Subject;

    #[test]
    fn an_instance_is_ready_when_it_is_connected() {
        let kind = Subject::parse("postgresinstance").unwrap().kind;
        let state = |connected: &str| {
            let conditions =
                json!([{ "type": "Connected", "status": connected, "reason": "Any", "message": "m" }]);
            let object = json!({ "metadata": { "name": "local" }, "status": { "conditions": conditions } });
            row(&kind, &object, Timestamp::UNIX_EPOCH, false).unwrap().state
        };
        assert_eq!(state("True"), State::Ready);
        assert_eq!(state("False"), State::NotReady);
    }
}
