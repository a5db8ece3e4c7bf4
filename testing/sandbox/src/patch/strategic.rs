//! Strategic merge: merges a patch with the strategies of the schema, and with directives in the patch.

use serde_json::{Map, Value};

use crate::error::ApiError;
use crate::schema::Schema;

const PATCH: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const DELETE: &str = "$deleteFromPrimitiveList/";
const ORDER: &str = "$setElementOrder/";

/// The value of `$patch` in a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Directive {
    Merge,
    Replace,
    Delete,
}

fn directive(map: &Map<String, Value>) -> Result<Directive, ApiError> {
    match map.get(PATCH) {
        None => Ok(Directive::Merge),
        Some(word) if word == "replace" => Ok(Directive::Replace),
        Some(word) if word == "delete" => Ok(Directive::Delete),
        Some(word) => Err(ApiError::unexplained(format!(
            "unknown patch type: {} in map: {}",
            in_go(word),
            in_go(&Value::Object(map.clone()))
        ))),
    }
}

/// A value in Go's format.
fn in_go(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let mut pairs: Vec<String> = map
                .iter()
                .map(|(key, value)| format!("{key}:{}", in_go(value)))
                .collect();
            pairs.sort();
            format!("map[{}]", pairs.join(" "))
        }
        Value::Array(list) => {
            let items: Vec<String> = list.iter().map(in_go).collect();
            format!("[{}]", items.join(" "))
        }
        Value::String(text) => text.clone(),
        Value::Null => "<nil>".to_owned(),
        other => other.to_string(),
    }
}

fn plain(map: &Map<String, Value>) -> Map<String, Value> {
    map.iter()
        .filter(|(key, _)| !key.starts_with('$'))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// Merges with the strategies of the schema.
pub(super) fn merge(
    schema: Option<Schema<'_>>,
    mut object: Map<String, Value>,
    patch: &Map<String, Value>,
) -> Result<Map<String, Value>, ApiError> {
    match directive(patch)? {
        Directive::Replace => return Ok(plain(patch)),
        Directive::Delete => return Ok(Map::new()),
        Directive::Merge => {}
    }
    if let Some(retained) = patch.get(RETAIN).and_then(Value::as_array) {
        let is_retained = |key: &str| retained.iter().any(|kept| kept == key);
        let named = patch
            .iter()
            .filter(|(key, value)| !key.starts_with('$') && !value.is_null());
        if named.into_iter().any(|(key, _)| !is_retained(key)) {
            return Err(ApiError::bad_request("invalid patch format of retainKeys"));
        }
        object.retain(|key, _| is_retained(key));
    }
    for (key, change) in patch {
        if let Some(field) = key.strip_prefix(DELETE) {
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
            (Some(Value::Object(old)), Value::Object(new)) => Value::Object(merge(at, old, new)?),
            (None, Value::Object(new)) => {
                if directive(new)? != Directive::Merge {
                    continue;
                }
                Value::Object(merge(at, Map::new(), new)?)
            }
            (old, Value::Array(new)) => {
                let old = match old {
                    Some(Value::Array(old)) => old,
                    _ => Vec::new(),
                };
                let order = patch.get(&format!("{ORDER}{key}")).and_then(Value::as_array);
                Value::Array(merge_list(at, old, new, order)?)
            }
            (_, new) => new.clone(),
        };
        object.insert(key.clone(), merged);
    }
    for (key, order) in patch {
        if let Some(field) = key.strip_prefix(ORDER)
            && let (Some(Value::Array(list)), Value::Array(order)) = (object.get_mut(field), order)
        {
            let merge_key = schema
                .and_then(|schema| schema.field(field))
                .and_then(|at| at.patch_strategy().1);
            reorder(list, order, merge_key);
        }
    }
    Ok(object)
}

/// Lists of maps are merged by a key of their items, lists of values as sets; others are replaced.
fn merge_list(
    schema: Option<Schema<'_>>,
    mut old: Vec<Value>,
    new: &[Value],
    order: Option<&Vec<Value>>,
) -> Result<Vec<Value>, ApiError> {
    let (strategy, merge_key) = schema.map(Schema::patch_strategy).unwrap_or_default();
    let mut directives = Vec::new();
    for item in new {
        directives.push(item.as_object().map_or(Ok(Directive::Merge), directive)?);
    }
    if directives.contains(&Directive::Replace) || !strategy.split(',').any(|one| one == "merge") {
        return Ok(new
            .iter()
            .filter(|item| item.get(PATCH).is_none())
            .cloned()
            .collect());
    }
    check_keys(new, merge_key)?;
    if let Some(order) = order {
        check_order(new, &directives, order, merge_key)?;
    }
    let same = |a: &Value, b: &Value| identity(a, merge_key) == identity(b, merge_key);
    let before = old.clone();
    let items = schema.and_then(Schema::items);
    let mut named = Vec::new();
    for (change, directive) in new.iter().zip(directives) {
        let known = old
            .iter()
            .position(|item| same(item, change))
            .map(|index| old.remove(index));
        match change.as_object() {
            Some(_) if directive == Directive::Delete => {}
            Some(map) => {
                let known = known
                    .and_then(|item| item.as_object().cloned())
                    .unwrap_or_default();
                named.push(Value::Object(merge(items, known, map)?));
            }
            None => named.push(change.clone()),
        }
    }
    Ok(interleave(old, named, |item| {
        before.iter().position(|known| same(known, item))
    }))
}

/// The identity of an item.
fn identity<'a>(item: &'a Value, merge_key: Option<&str>) -> Option<&'a Value> {
    match merge_key {
        Some(key) => item.get(key),
        None => Some(item),
    }
}

fn check_keys(new: &[Value], merge_key: Option<&str>) -> Result<(), ApiError> {
    let Some(key) = merge_key else { return Ok(()) };
    match new
        .iter()
        .find(|item| item.is_object() && item.get(key).is_none())
    {
        Some(item) => Err(ApiError::unexplained(format!(
            "map: {} does not contain declared merge key: {key}",
            in_go(item)
        ))),
        None => Ok(()),
    }
}

/// The order must name all merged items, in the same order.
fn check_order(
    new: &[Value],
    directives: &[Directive],
    order: &[Value],
    merge_key: Option<&str>,
) -> Result<(), ApiError> {
    let kept = new
        .iter()
        .zip(directives)
        .filter(|(_, directive)| **directive != Directive::Delete);
    let mut kept = kept.map(|(item, _)| identity(item, merge_key)).peekable();
    for place in order {
        if kept.peek() == Some(&identity(place, merge_key)) {
            kept.next();
        }
    }
    if kept.peek().is_none() {
        return Ok(());
    }
    let show = |list: &[Value]| in_go(&Value::Array(list.to_vec()));
    Err(ApiError::unexplained(format!(
        "The order in patch list:\n{}\n doesn't match {} list:\n{}\n",
        show(new),
        ORDER.trim_end_matches('/'),
        show(order)
    )))
}

/// Joins two lists: existing items keep their order, as far as the patch's order allows.
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

/// Puts the named items into the given order; others stay behind them.
fn reorder(list: &mut [Value], order: &[Value], merge_key: Option<&str>) {
    list.sort_by_key(|item| {
        let own = identity(item, merge_key);
        let place = order.iter().position(|wanted| identity(wanted, merge_key) == own);
        place.unwrap_or(usize::MAX)
    });
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::patch::{Kind, apply};
    use crate::schema::Schema;

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
