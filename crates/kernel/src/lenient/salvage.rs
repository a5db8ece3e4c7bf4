//! Removes the malformed fields of an object.
//!
//! The deserializer reports the path of an error, but not always exactly: it cannot see into flattened structures. So
//! this code searches for the smallest part whose removal lets the deserializer get further. That part is removed; if
//! it is required, a neutral value replaces it.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::path::{Step, at, children, put, shown, steps};
use crate::text::shorten;

/// Maximum number of bytes to parse for one object. An object has up to 1.5 MiB, and its author must not be able to
/// keep the operator busy with it.
const BUDGET: usize = 48 * 1024 * 1024;
/// Maximum number of attempts, however small the object is.
const ATTEMPTS: usize = 2_000;
/// Messages contain the value that does not fit.
const MESSAGE: usize = 512;

/// A malformed field.
#[derive(Clone, Debug, PartialEq)]
pub struct Flaw {
    /// The path, such as `spec.role.validUntil`.
    pub path: String,
    /// What is wrong with it.
    pub error: String,
    /// The removed value.
    removed: Value,
}

impl Flaw {
    fn new(path: &[Step], error: &str, removed: Value) -> Self {
        Self {
            path: shown(path),
            error: shorten(error, MESSAGE),
            removed,
        }
    }

    /// The deserializer has a bug.
    pub(super) fn panicked() -> Self {
        Self {
            path: "the object".to_owned(),
            error: "the operator failed in reading it; its log says more".to_owned(),
            removed: Value::Null,
        }
    }

    /// Whether the flaw is in this part of the object: `spec` or `status`.
    pub fn is_in(&self, part: &str) -> bool {
        self.path.split(['.', '[']).next() == Some(part)
    }

    /// Whether the flaw is a field with one of these names, contains one, or is below one.
    pub fn concerns(&self, fields: &[&str]) -> bool {
        let is_field = |name: &str| fields.contains(&name);
        self.path.split(['.', '[']).any(is_field) || has_field(&self.removed, &is_field)
    }
}

fn has_field(value: &Value, is_field: &impl Fn(&str) -> bool) -> bool {
    match value {
        Value::Object(fields) => fields
            .iter()
            .any(|(name, value)| is_field(name) || has_field(value, is_field)),
        Value::Array(items) => items.iter().any(|item| has_field(item, is_field)),
        _ => false,
    }
}

/// Why a value could not be read, and where, as far as the deserializer knows.
#[derive(Clone, Debug, PartialEq)]
struct Misfit {
    path: Vec<Step>,
    error: String,
}

impl Misfit {
    /// Whether both are the same error, although the quoted value may differ.
    fn is(&self, other: &Self) -> bool {
        fn expected(error: &str) -> &str {
            error
                .split_once("expected")
                .map_or(error, |(_, expected)| expected)
        }
        self.path == other.path && expected(&self.error) == expected(&other.error)
    }

    /// Whether the error is neither in this path nor around it.
    fn is_elsewhere(&self, path: &[Step]) -> bool {
        !self.path.starts_with(path) && !path.starts_with(&self.path)
    }

    /// The missing required field.
    fn missing(&self) -> Option<&str> {
        self.error.strip_prefix("missing field `")?.split('`').next()
    }
}

/// Reads an object, and removes its malformed fields. `None` if nothing readable is left.
pub fn salvage<O: DeserializeOwned>(mut value: Value) -> (Option<O>, Vec<Flaw>) {
    let mut attempts = Attempts::for_size(value.to_string().len());
    let mut flaws: Vec<Flaw> = Vec::new();
    loop {
        let misfit = match attempts.read::<O>(&value) {
            Some(Ok(object)) => return (Some(object), flaws),
            Some(Err(misfit)) => misfit,
            // There are too many to continue field by field.
            None => Misfit {
                path: vec![Step::Field("spec".into())],
                error: "too many of its fields cannot be read".into(),
            },
        };
        let repaired = attempts.repair::<O>(&mut value, &misfit);
        let Some((path, removed)) = repaired.or_else(|| attempts.give_up(&mut value, &misfit)) else {
            flaws.push(Flaw::new(&misfit.path, &misfit.error, Value::Null));
            return (None, flaws);
        };
        // A replacement for a required field is not a flaw itself.
        if !flaws.iter().any(|flaw| flaw.path == shown(&path)) {
            flaws.push(Flaw::new(&path, &misfit.error, removed));
        }
    }
}

struct Attempts {
    left: usize,
    /// The parts that were already removed as a whole: `spec`, `status`.
    given_up: Vec<String>,
}

impl Attempts {
    fn for_size(bytes: usize) -> Self {
        Self {
            left: (BUDGET / bytes.max(1)).clamp(16, ATTEMPTS),
            given_up: Vec::new(),
        }
    }

    /// Parses the value. `None` after too many attempts.
    fn read<O: DeserializeOwned>(&mut self, value: &Value) -> Option<Result<O, Misfit>> {
        self.left = self.left.checked_sub(1)?;
        Some(serde_path_to_error::deserialize(value).map_err(|error| Misfit {
            path: steps(error.path()),
            error: error.inner().to_string(),
        }))
    }

    /// Makes the smallest change that lets the deserializer get further. Returns the path and the removed value.
    fn repair<O: DeserializeOwned>(
        &mut self,
        value: &mut Value,
        misfit: &Misfit,
    ) -> Option<(Vec<Step>, Value)> {
        if let Some(missing) = misfit.missing() {
            let mut path = misfit.path.clone();
            let parent = at(value, &path)?.as_object_mut()?;
            parent.insert(missing.to_owned(), json!(""));
            path.push(Step::Field(missing.to_owned()));
            return Some((path, Value::Null));
        }
        let mut path = self.narrow::<O>(value, misfit)?;
        while !path.is_empty() {
            if let Some(changed) = self.replace::<O>(value, &path, misfit)? {
                let before = at(value, &path).map(std::mem::take).unwrap_or_default();
                *value = changed;
                return Some((path, before));
            }
            path.pop();
        }
        None
    }

    /// The value without this field, or with a neutral value if it is required: the first variant that gets further.
    /// Missing fields are found last, so a value that only lacks something has no other error.
    #[allow(
        clippy::option_option,
        reason = "the outer one is the end of the budget, the inner one is that nothing became better"
    )]
    fn replace<O: DeserializeOwned>(
        &mut self,
        value: &Value,
        path: &[Step],
        misfit: &Misfit,
    ) -> Option<Option<Value>> {
        let with = |what| {
            let mut changed = value.clone();
            put(&mut changed, path, what);
            changed
        };
        let without = with(None);
        match self.read::<O>(&without)? {
            Ok(_) => return Some(Some(without)),
            Err(now) if now.is(misfit) => return Some(None),
            Err(now) => {
                let (Some(Step::Field(name)), parent) = (path.last(), path.split_last()?.1) else {
                    return Some(Some(without));
                };
                let is_required = now.missing() == Some(name) && now.path == parent;
                if !is_required {
                    return Some(Some(without));
                }
            }
        }
        for neutral in neutral(&misfit.error) {
            let changed = with(Some(neutral));
            match self.read::<O>(&changed)? {
                Ok(_) => return Some(Some(changed)),
                Err(now) if now.missing().is_some() || now.is_elsewhere(path) => return Some(Some(changed)),
                Err(_) => {}
            }
        }
        Some(None)
    }

    /// Removes the whole spec, or the whole status.
    fn give_up(&mut self, value: &mut Value, misfit: &Misfit) -> Option<(Vec<Step>, Value)> {
        let part = match misfit.path.first() {
            Some(Step::Field(name)) if name == "status" => "status",
            _ => "spec",
        };
        if self.given_up.iter().any(|given_up| given_up == part) {
            return None;
        }
        self.given_up.push(part.into());
        self.left = ATTEMPTS;
        let removed = value.as_object_mut()?.insert(part.into(), json!({}));
        Some((vec![Step::Field(part.into())], removed.unwrap_or_default()))
    }

    /// The smallest part whose removal gets further, at the error's path or below it.
    fn narrow<O: DeserializeOwned>(&mut self, value: &mut Value, misfit: &Misfit) -> Option<Vec<Step>> {
        let mut path = misfit.path.clone();
        'deeper: loop {
            for step in children(at(value, &path)?) {
                path.push(step);
                let mut without = value.clone();
                put(&mut without, &path, None);
                let is_culprit = match self.read::<O>(&without)? {
                    Ok(_) => true,
                    // A missing field is found before an error in a flattened part, so that proves nothing.
                    Err(now) => !now.is(misfit) && now.missing().is_none(),
                };
                if is_culprit {
                    continue 'deeper;
                }
                path.pop();
            }
            return Some(path);
        }
    }
}

/// Values that a required field could accept.
fn neutral(error: &str) -> Vec<Value> {
    let mut neutral = vec![json!({}), json!([]), json!(""), json!(0), json!(false)];
    // The error of an enum lists its values.
    let expected = error.split_once("expected").map_or("", |(_, expected)| expected);
    neutral.extend(expected.split('`').skip(1).step_by(2).map(|name| json!(name)));
    neutral
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "camelCase")]
    struct Thing {
        spec: Spec,
        #[serde(default)]
        status: Option<Status>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "camelCase")]
    struct Spec {
        name: String,
        mode: Mode,
        #[serde(default)]
        size: u32,
        #[serde(default)]
        parts: Vec<Part>,
        #[serde(flatten)]
        more: More,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    enum Mode {
        Fast,
        Slow,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Part {
        number: u8,
    }

    #[derive(Debug, Default, Deserialize, PartialEq)]
    #[serde(rename_all = "camelCase", default)]
    struct More {
        deletion_policy: String,
        limit: Option<i32>,
    }

    #[derive(Debug, Default, Deserialize, PartialEq)]
    struct Status {
        seen: i64,
    }

    fn read(value: Value) -> (Option<Thing>, Vec<String>) {
        let (thing, flaws) = salvage(value);
        let shown = flaws.iter().map(|flaw| format!("{}: {}", flaw.path, flaw.error));
        (thing, shown.collect())
    }

    #[test]
    fn what_fits_is_kept_and_what_does_not_is_named() {
        let (thing, flaws) = read(json!({
            "spec": {
                "name": 5, "mode": "Slow", "size": 5_000_000_000_u64, "deletionPolicy": "Retain",
                "parts": [{ "number": 1 }, { "number": "x" }, { "number": 3 }],
            },
            "status": { "seen": 3 },
        }));
        let thing = thing.unwrap();
        assert_eq!(
            (thing.spec.name.as_str(), thing.spec.mode, thing.spec.size),
            ("", Mode::Slow, 0)
        );
        assert_eq!(thing.spec.more.deletion_policy, "Retain");
        assert_eq!(
            thing
                .spec
                .parts
                .iter()
                .map(|part| part.number)
                .collect::<Vec<_>>(),
            [1, 0, 3]
        );
        assert_eq!(thing.status, Some(Status { seen: 3 }));
        let places: Vec<&str> = flaws.iter().filter_map(|flaw| flaw.split(':').next()).collect();
        assert_eq!(places.len(), 3, "{flaws:?}");
        for place in ["spec.name", "spec.size", "spec.parts[1].number"] {
            assert!(places.contains(&place), "{flaws:?}");
        }
    }

    #[test]
    fn a_field_of_a_flattened_part_is_found() {
        let (thing, flaws) = read(json!({
            "spec": { "name": "a", "mode": "Fast", "limit": "many", "deletionPolicy": "Retain" },
        }));
        assert_eq!(
            thing.unwrap().spec.more,
            More {
                deletion_policy: "Retain".into(),
                limit: None
            }
        );
        assert!(flaws[0].starts_with("spec.limit: "), "{flaws:?}");
    }

    #[test]
    fn an_enum_of_another_version_and_a_missing_field_still_leave_an_object() {
        let (thing, flaws) = read(json!({ "spec": { "mode": "Sideways" }, "status": { "seen": [] } }));
        let thing = thing.unwrap();
        assert_eq!((thing.spec.name.as_str(), thing.spec.mode), ("", Mode::Fast));
        assert_eq!(flaws.len(), 3, "{flaws:?}");
    }

    #[test]
    fn whatever_stands_in_for_the_spec_there_is_an_object() {
        for spec in [json!(5), json!([]), json!({}), json!("x"), json!({ "parts": 5 })] {
            let (thing, flaws) = read(json!({ "spec": spec, "status": { "seen": 3 } }));
            assert_eq!(thing.unwrap().status, Some(Status { seen: 3 }), "{spec}");
            assert!(!flaws.is_empty());
        }
    }

    #[test]
    fn an_object_with_countless_flaws_is_read_in_bounded_time() {
        let parts: Vec<Value> = (0..60_000).map(|_| json!({ "number": "x" })).collect();
        let (thing, flaws) = read(json!({ "spec": { "name": "a", "mode": "Fast", "parts": parts } }));
        assert!(thing.is_some());
        assert!(!flaws.is_empty() && flaws.len() < 100, "{}", flaws.len());
    }

    #[test]
    fn a_flaw_concerns_what_it_is_in_and_what_went_with_it() {
        let flaw = |path: &str, removed: Value| Flaw {
            path: path.into(),
            error: String::new(),
            removed,
        };
        let fields = ["deletionPolicy"];
        assert!(flaw("spec.deletionPolicy", json!("Archive")).concerns(&fields));
        assert!(flaw("spec.createDatabase", json!({ "deletionPolicy": "x" })).concerns(&fields));
        assert!(!flaw("spec.size", json!(5)).concerns(&fields));
    }
}
