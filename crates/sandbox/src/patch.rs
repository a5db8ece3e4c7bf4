//! Patches: JSON patch and merge patch by library, strategic merge by the schema's patch strategies.

use serde_json::{Map, Value};

use crate::error::ApiError;
use crate::schema::Schema;

/// The media types of patches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Json,
    Merge,
    Strategic,
    Apply,
}

impl Kind {
    pub(crate) fn of(content_type: &str, custom: bool) -> Result<Self, ApiError> {
        let media = content_type.split(';').next().unwrap_or_default().trim();
        match media {
            "application/json-patch+json" => Ok(Self::Json),
            "application/merge-patch+json" => Ok(Self::Merge),
            "application/strategic-merge-patch+json" if !custom => Ok(Self::Strategic),
            "application/apply-patch+yaml" => Ok(Self::Apply),
            "application/strategic-merge-patch+json" => Err(ApiError::unsupported_media_type(
                "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
            )),
            _ => Err(ApiError::unsupported_media_type("415: Unsupported Media Type")),
        }
    }
}

/// Applies a patch other than an apply.
pub(crate) fn apply(
    kind: Kind,
    schema: Option<Schema<'_>>,
    object: &Value,
    body: &[u8],
) -> Result<Value, ApiError> {
    let malformed =
        |error: &dyn std::fmt::Display| ApiError::bad_request(format!("error decoding patch: {error}"));
    let mut patched = object.clone();
    match kind {
        Kind::Json => {
            let patch: json_patch::Patch = serde_json::from_slice(body).map_err(|error| malformed(&error))?;
            for operation in &patch.0 {
                lenient(operation, &mut patched).map_err(|()| {
                    ApiError::new(
                        422,
                        "Invalid",
                        "the server rejected our request due to an error in our request",
                    )
                })?;
            }
        }
        Kind::Merge => {
            let patch: Value = serde_json::from_slice(body).map_err(|error| malformed(&error))?;
            json_patch::merge(&mut patched, &patch);
        }
        Kind::Strategic => {
            let patch: Value = serde_json::from_slice(body).map_err(|error| malformed(&error))?;
            let Value::Object(patch) = patch else {
                return Err(malformed(&"not an object"));
            };
            patched = Value::Object(strategic(
                schema,
                patched.as_object().cloned().unwrap_or_default(),
                &patch,
            ));
        }
        Kind::Apply => {}
    }
    Ok(patched)
}

/// Does one step. The original replaces what is not there, which the standard does not.
fn lenient(operation: &json_patch::PatchOperation, object: &mut Value) -> Result<(), ()> {
    let mut operation = operation.clone();
    // A field that is not there is null for a test.
    if let json_patch::PatchOperation::Test(test) = &operation
        && test.value.is_null()
        && object.pointer(test.path.as_str()).is_none()
    {
        return Ok(());
    }
    if let json_patch::PatchOperation::Replace(replace) = &operation
        && object.pointer(replace.path.as_str()).is_none()
    {
        operation = json_patch::PatchOperation::Add(json_patch::AddOperation {
            path: replace.path.clone(),
            value: replace.value.clone(),
        });
    }
    json_patch::patch(object, &[operation]).map_err(|_| ())
}

fn directive(map: &Map<String, Value>) -> &str {
    map.get("$patch").and_then(Value::as_str).unwrap_or_default()
}

fn plain(map: &Map<String, Value>) -> Map<String, Value> {
    map.iter()
        .filter(|(key, _)| !key.starts_with('$'))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// Merges by the strategies that the schema names.
fn strategic(
    schema: Option<Schema<'_>>,
    mut object: Map<String, Value>,
    patch: &Map<String, Value>,
) -> Map<String, Value> {
    match directive(patch) {
        "replace" => return plain(patch),
        "delete" => return Map::new(),
        _ => {}
    }
    if let Some(retained) = patch.get("$retainKeys").and_then(Value::as_array) {
        object.retain(|key, _| retained.iter().any(|kept| kept.as_str() == Some(key)));
    }
    for (key, change) in patch {
        if let Some(field) = key.strip_prefix("$deleteFromPrimitiveList/") {
            if let (Some(Value::Array(list)), Value::Array(gone)) = (object.get_mut(field), change) {
                list.retain(|item| !gone.contains(item));
            }
            continue;
        }
        if key.starts_with('$') {
            continue;
        }
        let at = schema.and_then(|schema| schema.child(key));
        let merged = match (object.shift_remove(key), change) {
            (_, Value::Null) => continue,
            (Some(Value::Object(old)), Value::Object(new)) => Value::Object(strategic(at, old, new)),
            (None, Value::Object(new)) => {
                if matches!(directive(new), "delete" | "replace") {
                    continue;
                }
                Value::Object(strategic(at, Map::new(), new))
            }
            (old, Value::Array(new)) => {
                let old = match old {
                    Some(Value::Array(old)) => old,
                    _ => Vec::new(),
                };
                Value::Array(strategic_list(at, old, new))
            }
            (_, new) => new.clone(),
        };
        object.insert(key.clone(), merged);
    }
    for (key, order) in patch {
        if let Some(field) = key.strip_prefix("$setElementOrder/")
            && let (Some(Value::Array(list)), Value::Array(order)) = (object.get_mut(field), order)
        {
            let merge_key = schema
                .and_then(|schema| schema.field(field))
                .and_then(|at| at.patch_strategy().1);
            reorder(list, order, merge_key);
        }
    }
    object
}

fn strategic_list(schema: Option<Schema<'_>>, mut old: Vec<Value>, new: &[Value]) -> Vec<Value> {
    let (strategy, merge_key) = schema.map(Schema::patch_strategy).unwrap_or_default();
    let replaces = new
        .iter()
        .any(|item| item.as_object().is_some_and(|map| directive(map) == "replace"));
    if replaces || !strategy.split(',').any(|one| one == "merge") {
        return new
            .iter()
            .filter(|item| item.get("$patch").is_none())
            .cloned()
            .collect();
    }
    let same = |a: &Value, b: &Value| match merge_key {
        Some(key) => a.get(key) == b.get(key),
        None => a == b,
    };
    let order = old.clone();
    let items = schema.and_then(Schema::items);
    let mut named = Vec::new();
    for change in new {
        let before = old
            .iter()
            .position(|item| same(item, change))
            .map(|index| old.remove(index));
        match change.as_object() {
            Some(map) if directive(map) == "delete" => {}
            Some(map) => {
                let before = before
                    .and_then(|item| item.as_object().cloned())
                    .unwrap_or_default();
                named.push(Value::Object(strategic(items, before, map)));
            }
            None => named.push(change.clone()),
        }
    }
    interleave(old, named, |item| {
        order.iter().position(|known| same(known, item))
    })
}

/// Joins two lists: items that were there before keep their order, as far as the patch's own order allows.
fn interleave(kept: Vec<Value>, named: Vec<Value>, place: impl Fn(&Value) -> Option<usize>) -> Vec<Value> {
    let (mut kept, mut named) = (kept.into_iter().peekable(), named.into_iter().peekable());
    let mut all = Vec::new();
    while let (Some(one), Some(other)) = (kept.peek(), named.peek()) {
        let first = matches!((place(one), place(other)), (Some(one), Some(other)) if one < other);
        all.extend(if first { kept.next() } else { named.next() });
    }
    all.extend(kept);
    all.extend(named);
    all
}

/// Puts the named items into the given order; others keep their places behind them.
fn reorder(list: &mut [Value], order: &[Value], merge_key: Option<&str>) {
    let identity = |item: &Value| merge_key.map_or_else(|| Some(item.clone()), |key| item.get(key).cloned());
    let place = |item: &Value| {
        let own = identity(item);
        order
            .iter()
            .position(|wanted| identity(wanted) == own)
            .unwrap_or(usize::MAX)
    };
    list.sort_by_key(place);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn patched(object: &Value, patch: &Value) -> Value {
        let schema = Schema::of_kind("apps", "v1", "Deployment");
        apply(Kind::Strategic, schema, object, patch.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn containers_merge_by_name() {
        let object = json!({"spec": {"template": {"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b"}]}}}});
        let patch = json!({"spec": {"template": {"spec": {"containers": [
            {"name": "a", "image": "2"}, {"name": "b", "$patch": "delete"}, {"name": "c"}]}}}});
        let result = patched(&object, &patch);
        assert_eq!(
            result["spec"]["template"]["spec"]["containers"],
            json!([{"name": "a", "image": "2"}, {"name": "c"}])
        );
    }

    #[test]
    fn directives_are_obeyed() {
        let object = json!({"metadata": {"finalizers": ["a", "b"], "labels": {"x": "1"}}, "spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {}}}});
        let patch = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"], "labels": {"$patch": "replace", "y": "2"}},
            "spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}});
        assert_eq!(
            patched(&object, &patch),
            json!({"metadata": {"finalizers": ["b"], "labels": {"y": "2"}}, "spec": {"strategy": {"type": "Recreate"}}})
        );
    }
}
