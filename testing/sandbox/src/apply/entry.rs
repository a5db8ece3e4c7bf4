//! One entry of `metadata.managedFields`.

use serde_json::{Value, json};

use super::Conflict;
use super::set::Set;
use crate::store::text;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    Apply,
    Update,
}

#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) manager: String,
    pub(crate) operation: Operation,
    pub(crate) api_version: String,
    pub(crate) time: Option<String>,
    pub(crate) subresource: String,
    pub(crate) set: Set,
}

impl Entry {
    fn parse(value: &Value) -> Self {
        Self {
            manager: text(value, "/manager").to_owned(),
            operation: if text(value, "/operation") == "Apply" {
                Operation::Apply
            } else {
                Operation::Update
            },
            api_version: text(value, "/apiVersion").to_owned(),
            time: value.get("time").and_then(Value::as_str).map(str::to_owned),
            subresource: text(value, "/subresource").to_owned(),
            set: value.get("fieldsV1").map(Set::from_fields_v1).unwrap_or_default(),
        }
    }

    fn to_value(&self) -> Value {
        let operation = match self.operation {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        };
        let mut value =
            json!({"manager": self.manager, "operation": operation, "apiVersion": self.api_version});
        if let Some(time) = &self.time {
            value["time"] = json!(time);
        }
        value["fieldsType"] = json!("FieldsV1");
        value["fieldsV1"] = self.set.to_fields_v1();
        if !self.subresource.is_empty() {
            value["subresource"] = json!(self.subresource);
        }
        value
    }

    /// Whether two entries have the same manager. An applier is the same in all versions.
    pub(crate) fn is_same_writer(&self, other: &Self) -> bool {
        self.manager == other.manager
            && self.operation == other.operation
            && self.subresource == other.subresource
            && (self.operation == Operation::Apply || self.api_version == other.api_version)
    }

    /// The conflicts of another manager that writes these fields.
    pub(crate) fn conflicts(&self, fields: &Set) -> Vec<Conflict> {
        let subresource = match self.subresource.as_str() {
            "" => String::new(),
            name => format!(" with subresource \"{name}\""),
        };
        let using = match self.operation {
            Operation::Apply => String::new(),
            Operation::Update => format!(" using {}", self.api_version),
        };
        let message = format!("conflict with \"{}\"{subresource}{using}", self.manager);
        fields
            .paths()
            .into_iter()
            .map(|field| Conflict {
                message: message.clone(),
                field,
            })
            .collect()
    }
}

/// The entries of an object.
pub(crate) fn read(object: &Value) -> Vec<Entry> {
    let list = object
        .pointer("/metadata/managedFields")
        .and_then(Value::as_array);
    list.into_iter().flatten().map(Entry::parse).collect()
}

/// Writes entries into an object, in the original's order, without those that own nothing.
pub(crate) fn write(object: &mut Value, mut entries: Vec<Entry>) {
    entries.retain(|entry| !entry.set.is_empty());
    entries.sort_by(|a, b| {
        (a.operation, &a.time, &a.manager, &a.api_version, &a.subresource).cmp(&(
            b.operation,
            &b.time,
            &b.manager,
            &b.api_version,
            &b.subresource,
        ))
    });
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return;
    };
    if entries.is_empty() {
        metadata.shift_remove("managedFields");
    } else {
        metadata.insert(
            "managedFields".to_owned(),
            entries.iter().map(Entry::to_value).collect(),
        );
    }
}
