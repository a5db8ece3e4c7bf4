//! What must hold after every run, whatever happened in it.

use std::fmt;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value};
use stanchion_kernel::watch::MANAGED_BY;

pub use stanchion_testkit::crash::differences;
use stanchion_testkit::crash::normalise;

use crate::scenario::Kind;

/// No password, key or token that the operator makes is shorter.
const LEAST_SECRET: usize = 20;

/// A property.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Property {
    /// Users get done what they ask for: nothing is deleted for ever.
    Served,
    /// Nothing is written when nothing has changed.
    Rest,
    /// Every condition speaks of the present spec.
    Conditions,
    /// No condition claims what has not been true for long.
    Claims,
    /// An object that hangs holds up no other, and an outage is soon forgotten.
    Prompt,
    /// Nothing panics, except where a schedule asks for it.
    Panics,
    /// The end is that of the undisturbed run.
    SameEnd,
    /// Nothing is left of what is deleted.
    NothingLeft,
    /// No object had two passes at once.
    Alone,
    /// What must never be seen on the network was not seen: a write without the lease, a secret outside a Secret.
    Network,
}

/// A property that does not hold, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub property: Property,
    /// Where.
    pub what: String,
}

impl Violation {
    /// A violation.
    pub fn new(property: Property, what: impl Into<String>) -> Self {
        Self {
            property,
            what: what.into(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.property, self.what)
    }
}

/// Whether the status of an object speaks of its present spec. While a spec cannot be applied, `Ready` says so, and other
/// conditions may still be about the one before: their generation shows it. All conditions of a suspended object are
/// about the time before.
pub fn conditions(kind: &Kind, name: &str, object: &Value) -> Vec<Violation> {
    let generation = &object["metadata"]["generation"];
    let mut found = Vec::new();
    let mut stale = |what: String| {
        let what = format!("{} {name} has generation {generation}, and {what}", kind.kind);
        found.push(Violation::new(Property::Conditions, what));
    };
    let observed = &object["status"]["observedGeneration"];
    if observed != generation {
        stale(format!("its status is about generation {observed}"));
    }
    let conditions = || object["status"]["conditions"].as_array().into_iter().flatten();
    let fails = conditions().any(|condition| condition["type"] == "Ready" && condition["status"] != "True");
    let suspended = object["spec"]["suspend"] == true;
    for condition in conditions() {
        let observed = &condition["observedGeneration"];
        let may_be_older = suspended || fails && condition["type"] != "Ready";
        if observed != generation && !may_be_older {
            let (kind, status) = (&condition["type"], &condition["status"]);
            stale(format!("{kind} is {status} about generation {observed}"));
        }
    }
    found
}

/// The conditions among these that an object claims.
pub fn claims<'a>(object: &'a Value, among: &[&str]) -> Vec<&'a str> {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions
        .filter(|condition| condition["status"] == "True")
        .filter_map(|condition| condition["type"].as_str())
        .filter(|kind| among.contains(kind))
        .collect()
}

/// Whether an object outside of Secrets contains what the operator keeps in one. Short values are names and numbers.
pub fn leaks(objects: &Value) -> Vec<Violation> {
    let secrets = || objects["Secret"].as_object().into_iter().flatten();
    let made = secrets().filter(|(_, secret)| secret["metadata"]["labels"][MANAGED_BY.0] == MANAGED_BY.1);
    let kept: Vec<(&String, &String, String)> = made
        .flat_map(|(name, secret)| {
            let data = secret["data"].as_object().into_iter().flatten();
            data.filter_map(move |(key, value)| {
                let value = BASE64_STANDARD.decode(value.as_str()?).ok()?;
                Some((name, key, String::from_utf8(value).ok()?))
            })
        })
        .filter(|(_, _, value)| value.len() >= LEAST_SECRET)
        .collect();
    let mut found = Vec::new();
    let others = objects.as_object().into_iter().flatten();
    for (kind, objects) in others.filter(|(kind, _)| *kind != "Secret") {
        let text = objects.to_string();
        for (name, key, _) in kept.iter().filter(|(_, _, value)| text.contains(value.as_str())) {
            let what = format!("{key} of the Secret {name} is in an object of the kind {kind}");
            found.push(Violation::new(Property::Network, what));
        }
    }
    found
}

/// Whether objects that the operator has made are still there.
pub fn leftovers(objects: &Map<String, Value>, is_kept: fn(&str, &str) -> bool) -> Vec<Violation> {
    let mut found = Vec::new();
    for (kind, objects) in objects {
        for (name, object) in objects.as_object().into_iter().flatten() {
            if object["metadata"]["labels"][MANAGED_BY.0] == MANAGED_BY.1 && !is_kept(kind, name) {
                let what = format!("{kind} {name} is still there");
                found.push(Violation::new(Property::NothingLeft, what));
            }
        }
    }
    found
}

/// A state without what differs between any two runs.
pub fn normal(mut state: Value) -> Value {
    normalise(&mut state);
    // Times, and how often something was changed on the way.
    if let Some(kinds) = state["objects"].as_object_mut() {
        for object in kinds
            .values_mut()
            .filter_map(Value::as_object_mut)
            .flat_map(Map::values_mut)
        {
            if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.shift_remove("generation");
            }
            forget_generations(&mut object["status"]);
        }
    }
    state
}

fn forget_generations(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.shift_remove("observedGeneration");
            fields.values_mut().for_each(forget_generations);
        }
        Value::Array(items) => items.iter_mut().for_each(forget_generations),
        _ => {}
    }
}
