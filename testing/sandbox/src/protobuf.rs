//! Reads bodies in protobuf, which kubectl sends for built-in kinds. Responses are always JSON, which kubectl accepts.
//! The table contains field numbers only: the schemas describe the fields.

use std::collections::HashMap;
use std::sync::LazyLock;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};

use crate::data;
use crate::schema::Schema;

/// The first bytes of every object in protobuf.
const MAGIC: &[u8] = b"k8s\0";

static FIELDS: LazyLock<HashMap<&str, HashMap<u64, &str>>> = LazyLock::new(|| {
    let messages = data::protobuf_fields().iter();
    messages
        .map(|(message, fields)| {
            let fields = fields.as_object().into_iter().flatten();
            let fields = fields.filter_map(|(number, name)| Some((number.parse().ok()?, name.as_str()?)));
            (message.as_str(), fields.collect())
        })
        .collect()
});

/// One field in the wire format.
enum Wire<'a> {
    Varint(u64),
    Fixed([u8; 8]),
    Bytes(&'a [u8]),
}

/// A cursor over the fields of a message.
struct Message<'a>(&'a [u8]);

impl<'a> Message<'a> {
    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }
}

impl<'a> Iterator for Message<'a> {
    type Item = (u64, Wire<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let key = self.varint()?;
        let wire = match key & 7 {
            0 => Wire::Varint(self.varint()?),
            1 => Wire::Fixed(self.take(8)?.try_into().ok()?),
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                Wire::Bytes(self.take(length)?)
            }
            _ => return None,
        };
        Some((key >> 3, wire))
    }
}

fn bytes(message: &[u8], number: u64) -> Option<&[u8]> {
    Message(message).find_map(|(found, wire)| match wire {
        Wire::Bytes(bytes) if found == number => Some(bytes),
        _ => None,
    })
}

fn varint(message: &[u8], number: u64) -> i64 {
    let found = Message(message).find_map(|(found, wire)| match wire {
        Wire::Varint(value) if found == number => Some(value),
        _ => None,
    });
    found.unwrap_or_default().cast_signed()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The object in a body, or `None` if the table does not contain its kind.
pub(crate) fn decode(body: &[u8]) -> Option<Value> {
    let unknown = body.strip_prefix(MAGIC)?;
    let kind = bytes(unknown, 1)?;
    let (api_version, kind) = (text(bytes(kind, 1)?), text(bytes(kind, 2)?));
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let mut object = json!({"apiVersion": api_version, "kind": kind});
    let schema = Schema::of_kind(group, version, &kind)?;
    if let Value::Object(fields) = message(schema, bytes(unknown, 2).unwrap_or_default())? {
        for (key, value) in fields {
            object[key] = value;
        }
    }
    Some(object)
}

/// A value of a named type.
fn message(schema: Schema<'_>, wire: &[u8]) -> Option<Value> {
    match schema.short_name() {
        "Quantity" => return Some(json!(text(bytes(wire, 1)?))),
        "Time" | "MicroTime" => {
            let nanos = i32::try_from(varint(wire, 2)).ok()?;
            let time = jiff::Timestamp::new(varint(wire, 1), nanos).ok()?;
            let format = if schema.short_name() == "Time" {
                "%Y-%m-%dT%H:%M:%SZ"
            } else {
                "%Y-%m-%dT%H:%M:%S.%6fZ"
            };
            return Some(if wire.is_empty() {
                Value::Null
            } else {
                json!(time.strftime(format).to_string())
            });
        }
        "IntOrString" if varint(wire, 1) == 0 => return Some(json!(varint(wire, 2))),
        "IntOrString" => return Some(json!(text(bytes(wire, 3)?))),
        "RawExtension" | "FieldsV1" => return serde_json::from_slice(bytes(wire, 1)?).ok(),
        _ => {}
    }
    let mut object = Map::new();
    fill(&mut object, schema, schema.type_name()?, wire)?;
    Some(Value::Object(object))
}

/// Reads the fields of a message. Fields that JSON does not have are embedded structs.
fn fill(object: &mut Map<String, Value>, schema: Schema<'_>, type_name: &str, wire: &[u8]) -> Option<()> {
    let names = FIELDS.get(type_name)?;
    for (number, wire) in Message(wire) {
        let Some(name) = names.get(&number) else { continue };
        match (schema.field(name), &wire) {
            (Some(field), wire) => add(object, name, field, wire)?,
            (None, Wire::Bytes(bytes)) => fill(object, schema, &embedded(type_name, name), bytes)?,
            (None, _) => {}
        }
    }
    Some(())
}

/// The type of an embedded struct: its field has the same name, with one exception.
fn embedded(owner: &str, field: &str) -> String {
    let (package, _) = owner.rsplit_once('.').unwrap_or_default();
    let (first, rest) = field.split_at_checked(1).unwrap_or_default();
    let prefix = if field == "handler" { "Probe" } else { "" };
    format!("{package}.{prefix}{}{rest}", first.to_uppercase())
}

/// In the wire format an unset field looks like one with its zero value. For these fields the zero value is
/// significant.
const MEANT: [&str; 17] = [
    "allowPrivilegeEscalation",
    "automountServiceAccountToken",
    "backoffLimit",
    "completions",
    "enableServiceLinks",
    "failedJobsHistoryLimit",
    "fsGroup",
    "minReplicas",
    "parallelism",
    "readOnlyRootFilesystem",
    "replicas",
    "revisionHistoryLimit",
    "runAsGroup",
    "runAsNonRoot",
    "runAsUser",
    "storageClassName",
    "successfulJobsHistoryLimit",
];

fn is_unset(name: &str, wire: &Wire<'_>, field: Schema<'_>) -> bool {
    let empty = match wire {
        Wire::Varint(value) => *value == 0,
        Wire::Fixed(_) => false,
        Wire::Bytes(bytes) => bytes.is_empty() && field.json_type() == "string",
    };
    empty && !MEANT.contains(&name)
}

fn add(object: &mut Map<String, Value>, name: &str, field: Schema<'_>, wire: &Wire<'_>) -> Option<()> {
    if is_unset(name, wire, field) {
        return Some(());
    }
    match (field.items(), field.values(), wire) {
        (Some(item), _, _) => {
            let value = scalar(item, wire)?;
            object
                .entry(name)
                .or_insert_with(|| json!([]))
                .as_array_mut()?
                .push(value);
        }
        (None, Some(values), Wire::Bytes(entry)) => {
            let key = text(bytes(entry, 1).unwrap_or_default());
            let value = scalar(values, &Wire::Bytes(bytes(entry, 2).unwrap_or_default()))?;
            object
                .entry(name)
                .or_insert_with(|| json!({}))
                .as_object_mut()?
                .insert(key, value);
        }
        _ => {
            object.insert(name.to_owned(), scalar(field, wire)?);
        }
    }
    Some(())
}

/// One value. Lists inside maps are separate messages, with the items in field 1.
fn scalar(schema: Schema<'_>, wire: &Wire<'_>) -> Option<Value> {
    Some(match (schema.json_type(), wire) {
        ("boolean", Wire::Varint(value)) => json!(*value != 0),
        (_, Wire::Varint(value)) => json!(value.cast_signed()),
        (_, Wire::Fixed(bytes)) => json!(f64::from_le_bytes(*bytes)),
        ("string", Wire::Bytes(bytes)) if schema.type_name().is_none() && schema.format() == "byte" => {
            json!(STANDARD.encode(bytes))
        }
        ("string", Wire::Bytes(bytes)) if schema.type_name().is_none() => json!(text(bytes)),
        ("array", Wire::Bytes(list)) => {
            let item = schema.items()?;
            Message(list)
                .filter(|(number, _)| *number == 1)
                .map(|(_, wire)| scalar(item, &wire))
                .collect::<Option<_>>()?
        }
        (_, Wire::Bytes(bytes)) => message(schema, bytes)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Length-delimited field.
    fn field(number: u8, content: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, u8::try_from(content.len()).unwrap()], content].concat()
    }

    #[test]
    fn a_config_map_is_read() {
        let metadata = [
            field(1, b"a"),
            field(11, &[field(1, b"app"), field(2, b"web")].concat()),
        ]
        .concat();
        let entry = [field(1, b"k"), field(2, b"v")].concat();
        let raw = [field(1, &metadata), field(2, &entry), vec![4 << 3, 1]].concat();
        let kind = [field(1, b"v1"), field(2, b"ConfigMap")].concat();
        let body = [MAGIC, &field(1, &kind), &field(2, &raw)].concat();
        assert_eq!(
            decode(&body).unwrap(),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": {"app": "web"}},
                "data": {"k": "v"}, "immutable": true})
        );
        assert_eq!(decode(b"{}"), None);
    }
}
