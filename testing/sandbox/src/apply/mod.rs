//! Server-side apply and field ownership: `metadata.managedFields` after every write, conflicts between
//! managers, and the removal of fields that a manager no longer applies.

mod entry;
mod set;
mod typed;
mod walk;

use serde_json::{Map, Value, json};

use crate::schema::Schema;
use entry::{Entry, Operation};
use set::Set;
use walk::Difference;

/// Metadata that the server sets and no manager owns.
const SERVER_FIELDS: [&str; 9] = [
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
];

/// kubectl's default field manager for server-side apply.
const KUBECTL: &str = "kubectl";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// A field that another manager owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Conflict {
    pub(crate) message: String,
    pub(crate) field: String,
}

/// The manager, the endpoint and the time of a write.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Writer<'a> {
    pub(crate) schema: Option<Schema<'a>>,
    pub(crate) manager: &'a str,
    pub(crate) api_version: &'a str,
    pub(crate) subresource: &'a str,
    /// Top-level fields that this endpoint never changes.
    pub(crate) ignored: &'a [&'a str],
    pub(crate) now: &'a str,
}

impl Writer<'_> {
    fn strip(&self, set: Set) -> Set {
        let set = set
            .without(&["apiVersion"])
            .without(&["kind"])
            .without_member("metadata");
        let set = SERVER_FIELDS
            .iter()
            .fold(set, |set, field| set.without(&["metadata", field]));
        self.ignored.iter().fold(set, |set, field| set.without(&[field]))
    }

    fn entry(&self, operation: Operation, set: Set) -> Entry {
        Entry {
            manager: self.manager.to_owned(),
            operation,
            api_version: self.api_version.to_owned(),
            // The original does not date changes through the scale subresource.
            time: (self.subresource != "scale").then(|| self.now.to_owned()),
            subresource: self.subresource.to_owned(),
            set,
        }
    }

    fn difference(&self, old: &Value, new: &Value) -> Difference {
        let found = Difference::between(self.schema, old, new);
        Difference {
            added: self.strip(found.added),
            modified: self.strip(found.modified),
            removed: self.strip(found.removed),
        }
    }

    /// Records the owners of the fields of a new object, compared with an empty object.
    pub(crate) fn create(&self, empty: &Value, new: &mut Value) {
        self.record(Vec::new(), empty, new);
    }

    /// Records the owners after an update or a patch.
    pub(crate) fn update(&self, old: &Value, new: &mut Value) {
        let given = new.pointer("/metadata/managedFields").and_then(Value::as_array);
        let entries = match given {
            // A single empty entry removes all entries.
            Some(list) if list.len() == 1 && list.first() == Some(&json!({})) => {
                entry::write(new, Vec::new());
                return;
            }
            Some(list) if !list.is_empty() => entry::read(new),
            _ => entry::read(old),
        };
        if entries.is_empty() {
            // No manager owns fields of this object so far; only an apply starts to record them.
            return;
        }
        self.record(entries, old, new);
    }

    fn record(&self, mut entries: Vec<Entry>, old: &Value, new: &mut Value) {
        let difference = self.difference(&without_managed(old), &without_managed(new));
        let taken = difference.added.union(&difference.modified);
        for entry in &mut entries {
            entry.set.subtract(&taken);
            entry.set.subtract(&difference.removed);
        }
        if !taken.is_empty() {
            let mine = self.entry(Operation::Update, taken);
            match entries.iter_mut().find(|entry| entry.is_same_writer(&mine)) {
                Some(entry) => {
                    entry.set = entry.set.union(&mine.set);
                    entry.time = mine.time;
                }
                None => entries.push(mine),
            }
        }
        entry::write(new, entries);
    }

    /// Applies a configuration to an object, or creates it.
    pub(crate) fn apply(
        &self,
        live: Option<&Value>,
        config: &Value,
        force: bool,
    ) -> Result<Value, Vec<Conflict>> {
        let empty = json!({"apiVersion": config.get("apiVersion"), "kind": config.get("kind")});
        let mut entries = live.map(entry::read).unwrap_or_default();
        if let Some(live) = live
            && entries.is_empty()
        {
            let fields = self.difference(&empty, &without_managed(live)).added;
            let mut before = self.entry(Operation::Update, fields);
            "before-first-apply".clone_into(&mut before.manager);
            before.subresource = String::new();
            entries.push(before);
        }
        let live = without_managed(live.unwrap_or(&empty));
        let mine = self.entry(Operation::Apply, self.strip(walk::fields(self.schema, config)));
        let merged = walk::merge(self.schema, Some(&live), Some(config));
        let last = entries
            .iter()
            .position(|entry| entry.is_same_writer(&mine))
            .map(|index| entries.remove(index));
        let mut applied = match &last {
            // What is still applied stays.
            Some(last) if !last.set.is_within(&mine.set) => self.prune(&merged, last, &mine, &entries),
            _ => merged,
        };

        let difference = self.difference(&live, &applied);
        let taken = difference.added.union(&difference.modified);
        let own = self.applied_by_kubectl(&live);
        let conflicts: Vec<(&Entry, Set)> = entries
            .iter()
            .map(|entry| (entry, entry.set.intersection(&taken).minus(&own)))
            .filter(|(_, set)| !set.is_empty())
            .collect();
        if !force && !conflicts.is_empty() {
            return Err(conflicts
                .iter()
                .flat_map(|(entry, set)| entry.conflicts(set))
                .collect());
        }
        for entry in &mut entries {
            entry.set.subtract(&taken);
            entry.set.subtract(&difference.removed);
        }
        let mut mine = mine;
        if difference.is_empty() {
            mine.time = last.and_then(|last| last.time);
        }
        entries.push(mine);
        entry::write(&mut applied, entries);
        Ok(applied)
    }

    /// The fields that kubectl applied on the client side before and that have not changed since. When kubectl switches
    /// to server-side apply, these fields are not conflicts.
    fn applied_by_kubectl(&self, live: &Value) -> Set {
        let Some(last) = last_applied(live).filter(|_| self.manager == KUBECTL) else {
            return Set::default();
        };
        let changed = self.difference(&last, live);
        self.strip(walk::fields(self.schema, &last))
            .minus(&changed.modified)
            .minus(&changed.removed)
    }

    /// Removes fields that this manager applied before, no longer applies, and no other manager owns.
    fn prune(&self, merged: &Value, last: &Entry, mine: &Entry, others: &[Entry]) -> Value {
        // The metadata as a whole is never removed.
        let named = |set: &Set| set.with_named_parents(self.schema).without_member("metadata");
        let without = |set: &Set| walk::remove(self.schema, merged, set);
        let all = named(&walk::fields(self.schema, merged));
        let owned = others
            .iter()
            .fold(mine.set.clone(), |owned, entry| owned.union(&entry.set));

        let pruned = named(&walk::fields(self.schema, &without(&named(&last.set))));
        let unowned = without(&all.minus(&pruned).minus(&named(&owned)));
        let kept = named(&walk::fields(self.schema, &unowned));
        without(&all.minus(&kept).intersection(&named(&last.set)))
    }
}

/// Updates kubectl's annotation with the applied configuration if the old annotation would be wrong now.
pub(crate) fn note_applied(manager: &str, live: &Value, given: &Value, applied: &mut Value) {
    if manager != KUBECTL || last_applied(live).is_none() {
        return;
    }
    let mut given = without_managed(given);
    given.sort_all_objects();
    applied["metadata"]["annotations"][LAST_APPLIED] = json!(format!("{given}\n"));
}

/// The configuration in kubectl's annotation for client-side apply.
fn last_applied(live: &Value) -> Option<Value> {
    let noted = live
        .pointer("/metadata/annotations")?
        .get(LAST_APPLIED)?
        .as_str()?;
    serde_json::from_str(noted).ok()
}

/// Why a configuration does not fit its schema: a field that is not declared, or has another type.
pub(crate) fn untyped(schema: Option<Schema<'_>>, config: &Value) -> Option<String> {
    typed::mismatch(schema?, config, "")
}

/// A copy without the managed fields, which are often larger than the rest.
fn without_managed(object: &Value) -> Value {
    let Value::Object(fields) = object else {
        return object.clone();
    };
    let copy = |(name, value): (&String, &Value)| match value {
        Value::Object(metadata) if name == "metadata" => {
            let kept = metadata.iter().filter(|(field, _)| *field != "managedFields");
            (
                name.clone(),
                kept.map(|(field, value)| (field.clone(), value.clone()))
                    .collect(),
            )
        }
        _ => (name.clone(), value.clone()),
    };
    fields.iter().map(copy).collect()
}

/// The message for all conflicts of one apply.
pub(crate) fn conflict_message(conflicts: &[Conflict]) -> String {
    let mut managers: Vec<(&str, Vec<&str>)> = Vec::new();
    for conflict in conflicts {
        match managers
            .iter_mut()
            .find(|(message, _)| *message == conflict.message)
        {
            Some((_, fields)) => fields.push(&conflict.field),
            None => managers.push((&conflict.message, vec![&conflict.field])),
        }
    }
    let parts: Vec<String> = managers
        .iter()
        .map(|(message, fields)| match fields.as_slice() {
            [field] if conflicts.len() == 1 => format!("{message}: {field}"),
            fields => format!(
                "{}:\n- {}",
                message.replacen("conflict ", "conflicts ", 1),
                fields.join("\n- ")
            ),
        })
        .collect();
    let plural = if conflicts.len() == 1 { "" } else { "s" };
    format!(
        "Apply failed with {} conflict{plural}: {}",
        conflicts.len(),
        parts.join("\n")
    )
}

/// Whether two objects differ at most in the times of their managed fields.
pub(crate) fn same_but_times(a: &Value, b: &Value) -> bool {
    let entries = |a: &Value, b: &Value| match (a, b) {
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_but(a, b, "time", |_, _| true))
        }
        _ => a == b,
    };
    let metadata = |a: &Value, b: &Value| same_but(a, b, "managedFields", entries);
    same_but(a, b, "metadata", metadata)
}

/// Whether two objects are the same, except that one field is compared in another way. A field that only one of them has
/// is compared with null.
fn same_but(a: &Value, b: &Value, field: &str, compare: impl Fn(&Value, &Value) -> bool) -> bool {
    let (Value::Object(first), Value::Object(second)) = (a, b) else {
        return a == b;
    };
    let others = |map: &Map<String, Value>| map.len() - usize::from(map.contains_key(field));
    let same = |(name, value): (&String, &Value)| name == field || second.get(name) == Some(value);
    let (a, b) = (first.get(field), second.get(field));
    others(first) == others(second)
        && first.iter().all(same)
        && compare(a.unwrap_or(&Value::Null), b.unwrap_or(&Value::Null))
}

#[cfg(test)]
mod tests;
