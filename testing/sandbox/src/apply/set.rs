//! Sets of fields: what a manager owns, in memory and as `fieldsV1`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::schema::Schema;

/// One step of a path, in the notation of `fieldsV1`: `f:name`, `k:{"name":"x"}`, `v:"x"`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Element(Arc<str>);

impl Element {
    pub(crate) fn field(name: &str) -> Self {
        Self(format!("f:{name}").into())
    }

    pub(crate) fn value(value: &Value) -> Self {
        Self(format!("v:{value}").into())
    }

    /// An item of a list of type map: its keys, sorted.
    pub(crate) fn keyed(keys: &BTreeMap<&str, Value>) -> Self {
        let keys: Map<String, Value> = keys
            .iter()
            .map(|(key, value)| ((*key).to_owned(), value.clone()))
            .collect();
        Self(format!("k:{}", Value::Object(keys)).into())
    }

    pub(crate) fn shown(&self) -> String {
        let mut text = String::new();
        self.show(&mut text);
        text
    }

    fn as_field(&self) -> Option<&str> {
        self.0.strip_prefix("f:")
    }

    /// The step in the format of conflict messages.
    fn show(&self, path: &mut String) {
        if let Some(name) = self.as_field() {
            let _ = write!(path, ".{name}");
        } else if let Some(value) = self.0.strip_prefix("v:") {
            let _ = write!(path, "[={value}]");
        } else if let Some(Ok(Value::Object(keys))) = self.0.strip_prefix("k:").map(serde_json::from_str) {
            let keys: Vec<String> = keys.iter().map(|(key, value)| format!("{key}={value}")).collect();
            let _ = write!(path, "[{}]", keys.join(","));
        }
    }
}

/// A set of paths, stored as a tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Set {
    members: BTreeSet<Element>,
    children: BTreeMap<Element, Set>,
}

impl Set {
    pub(crate) fn is_empty(&self) -> bool {
        self.members.is_empty() && self.children.values().all(Self::is_empty)
    }

    /// Whether all paths are in `other`.
    pub(crate) fn is_within(&self, other: &Self) -> bool {
        let has = |(element, set): (&Element, &Self)| match other.children.get(element) {
            Some(theirs) => set.is_within(theirs),
            None => set.is_empty(),
        };
        self.members.is_subset(&other.members) && self.children.iter().all(has)
    }

    pub(crate) fn has(&self, element: &Element) -> bool {
        self.members.contains(element)
    }

    pub(crate) fn below(&self, element: &Element) -> Option<&Self> {
        self.children.get(element).filter(|set| !set.is_empty())
    }

    pub(crate) fn insert(&mut self, element: Element) {
        self.members.insert(element);
    }

    pub(crate) fn below_mut(&mut self, element: Element) -> &mut Self {
        self.children.entry(element).or_default()
    }

    pub(crate) fn insert_path(&mut self, path: &[Element]) {
        match path {
            [] => {}
            [last] => self.insert(last.clone()),
            [first, rest @ ..] => self.below_mut(first.clone()).insert_path(rest),
        }
    }

    pub(crate) fn union(&self, other: &Self) -> Self {
        let mut all = self.clone();
        all.members.extend(other.members.iter().cloned());
        for (element, set) in &other.children {
            let merged = all
                .children
                .get(element)
                .map_or_else(|| set.clone(), |own| own.union(set));
            all.children.insert(element.clone(), merged);
        }
        all
    }

    /// Removes the paths of `other`.
    pub(crate) fn subtract(&mut self, other: &Self) {
        for element in &other.members {
            self.members.remove(element);
        }
        for (element, theirs) in &other.children {
            if let Some(own) = self.children.get_mut(element) {
                own.subtract(theirs);
                if own.is_empty() {
                    self.children.remove(element);
                }
            }
        }
    }

    /// The paths that are not in `other`.
    pub(crate) fn minus(&self, other: &Self) -> Self {
        let children = self
            .children
            .iter()
            .map(|(element, set)| match other.children.get(element) {
                Some(theirs) => (element.clone(), set.minus(theirs)),
                None => (element.clone(), set.clone()),
            });
        Self {
            members: self.members.difference(&other.members).cloned().collect(),
            children: children.filter(|(_, set)| !set.is_empty()).collect(),
        }
    }

    pub(crate) fn intersection(&self, other: &Self) -> Self {
        let children = self.children.iter().filter_map(|(element, set)| {
            Some((element.clone(), set.intersection(other.children.get(element)?)))
        });
        Self {
            members: self.members.intersection(&other.members).cloned().collect(),
            children: children.filter(|(_, set)| !set.is_empty()).collect(),
        }
    }

    /// The set without the field and everything below it.
    pub(crate) fn without(mut self, path: &[&str]) -> Self {
        match path {
            [] => {}
            [last] => {
                let element = Element::field(last);
                self.members.remove(&element);
                self.children.remove(&element);
            }
            [first, rest @ ..] => {
                let element = Element::field(first);
                if let Some(child) = self.children.remove(&element) {
                    let child = child.without(rest);
                    if !child.is_empty() {
                        self.children.insert(element, child);
                    }
                }
            }
        }
        self
    }

    /// The set without the field itself; fields below it stay.
    pub(crate) fn without_member(mut self, name: &str) -> Self {
        self.members.remove(&Element::field(name));
        self
    }

    /// The set in which declared fields with members below them are members themselves.
    pub(crate) fn with_named_parents(&self, schema: Option<Schema<'_>>) -> Self {
        let mut all = Self {
            members: self.members.clone(),
            children: BTreeMap::new(),
        };
        for (element, set) in &self.children {
            let child = match element.as_field() {
                Some(name) => {
                    if schema.is_some_and(|schema| schema.field(name).is_some()) {
                        all.members.insert(element.clone());
                    }
                    schema.and_then(|schema| schema.child(name))
                }
                None => schema.and_then(Schema::items),
            };
            all.children
                .insert(element.clone(), set.with_named_parents(child));
        }
        all
    }

    /// All paths, in the format of messages.
    pub(crate) fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.collect("", &mut paths);
        paths
    }

    fn collect(&self, prefix: &str, paths: &mut Vec<String>) {
        let elements: BTreeSet<&Element> = self.members.iter().chain(self.children.keys()).collect();
        for element in elements {
            let mut path = prefix.to_owned();
            element.show(&mut path);
            if self.members.contains(element) {
                paths.push(path.clone());
            }
            if let Some(set) = self.children.get(element) {
                set.collect(&path, paths);
            }
        }
    }

    pub(crate) fn to_fields_v1(&self) -> Value {
        let elements: BTreeSet<&Element> = self.members.iter().chain(self.children.keys()).collect();
        let mut fields = Map::new();
        for element in elements {
            let below = self.children.get(element).filter(|set| !set.is_empty());
            let mut entry = Map::new();
            if let Some(set) = below {
                if self.members.contains(element) {
                    entry.insert(".".to_owned(), Value::Object(Map::new()));
                }
                if let Value::Object(inner) = set.to_fields_v1() {
                    entry.extend(inner);
                }
            } else if !self.members.contains(element) {
                continue;
            }
            fields.insert(element.0.to_string(), Value::Object(entry));
        }
        Value::Object(fields)
    }

    pub(crate) fn from_fields_v1(fields: &Value) -> Self {
        let mut set = Self::default();
        for (key, value) in fields.as_object().into_iter().flatten() {
            if key == "." {
                continue;
            }
            let element = Element(key.as_str().into());
            let below = Self::from_fields_v1(value);
            if below.is_empty() || value.get(".").is_some() {
                set.insert(element.clone());
            }
            if !below.is_empty() {
                set.children.insert(element, below);
            }
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_v1_is_read_and_written() {
        let fields = json!({"f:metadata": {"f:labels": {".": {}, "f:app": {}}},
            "f:spec": {"f:containers": {"k:{\"name\":\"c\"}": {".": {}, "f:image": {}}}, "f:replicas": {}}});
        let set = Set::from_fields_v1(&fields);
        assert_eq!(set.to_fields_v1(), fields);
        assert_eq!(
            set.paths(),
            [
                ".metadata.labels",
                ".metadata.labels.app",
                ".spec.containers[name=\"c\"]",
                ".spec.containers[name=\"c\"].image",
                ".spec.replicas",
            ]
        );
        assert!(set.minus(&set).is_empty());
        let mut rest = set.clone();
        rest.subtract(&Set::from_fields_v1(
            &json!({"f:spec": {"f:replicas": {}}, "f:status": {}}),
        ));
        assert_eq!(rest.paths(), set.paths().split_last().unwrap().1);
        assert!(rest.is_within(&set) && !set.is_within(&rest));
        rest.subtract(&set);
        assert_eq!(rest, Set::default());
        assert_eq!(set.union(&set), set);
        assert_eq!(set.intersection(&set), set);
    }
}
