//! Merges layers of values.

use serde_json::Value;
use stanchion_api::gitlab::Values;

/// Merges `over` into `values`: maps are merged, everything else is replaced, lists as a whole. Null removes a value,
/// so that the chart's own default applies: null itself is not passed to Helm, which would remove the default, too, and
/// break templates.
pub(crate) fn merge(values: &mut Values, over: &Values) {
    for (key, new) in over {
        match (values.get_mut(key), new) {
            (_, Value::Null) => {
                values.shift_remove(key);
            }
            (Some(Value::Object(old)), Value::Object(new)) => merge(old, new),
            (_, Value::Object(new)) => {
                let mut map = Values::new();
                merge(&mut map, new);
                values.insert(key.clone(), map.into());
            }
            (_, new) => {
                values.insert(key.clone(), new.clone());
            }
        }
    }
}

/// Removes empty maps, such as null leaves behind: for Helm they mean the chart's own default. An API server turns a
/// map whose last field is removed by apply into null, which would cost another upgrade. Contents of lists stay as they
/// are.
pub(super) fn tidy(values: &mut Values) {
    values.retain(|_, value| match value {
        Value::Object(map) => {
            tidy(map);
            !map.is_empty()
        }
        _ => true,
    });
}

/// Merges parts into `values`, in order; anything but a map is ignored.
pub(super) fn merge_all(values: &mut Values, parts: impl IntoIterator<Item = Value>) {
    for part in parts {
        if let Value::Object(part) = part {
            merge(values, &part);
        }
    }
}

/// The parts of one subject, merged; a missing part is ignored.
pub(super) fn layered<const PARTS: usize>(parts: [Option<Value>; PARTS]) -> Value {
    let mut values = Values::new();
    merge_all(&mut values, parts.into_iter().flatten());
    values.into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn merged(under: Value, over: &Value) -> Value {
        let Value::Object(mut values) = under else {
            panic!("values are a map")
        };
        merge(&mut values, over.as_object().unwrap());
        values.into()
    }

    #[test]
    fn maps_are_joined_lists_replaced_and_null_takes_away() {
        let under = json!({ "a": { "b": 1, "c": 2 }, "list": [1, 2], "gone": { "x": 1 }, "map": { "x": 1 }, "scalar": 1 });
        let over = json!({
            "a": { "c": 3, "d": null }, "list": [3], "gone": null, "map": 2, "scalar": { "y": null, "z": 1 }, "list2": [null],
        });
        let expected =
            json!({ "a": { "b": 1, "c": 3 }, "list": [3], "map": 2, "scalar": { "z": 1 }, "list2": [null] });
        assert_eq!(merged(under, &over), expected);
    }

    #[test]
    fn what_is_empty_says_nothing() {
        let mut values = json!({
            "a": { "b": {}, "c": { "d": {} }, "e": 1 }, "f": { "g": {} }, "list": [{}], "none": [], "text": "",
        });
        tidy(values.as_object_mut().unwrap());
        assert_eq!(
            values,
            json!({ "a": { "e": 1 }, "list": [{}], "none": [], "text": "" })
        );
    }

    fn tree() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (0..5_u8).prop_map(Value::from),
            "[a-c]{0,2}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                map_of(inner),
            ]
        })
    }

    fn map_of(values: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
        prop::collection::hash_map("[a-d]", values, 0..4)
            .prop_map(|map| Value::Object(map.into_iter().collect()))
    }

    /// Every value that is not a map, under its path.
    fn leaves(value: &Value, path: &str) -> Vec<(String, Value)> {
        match value {
            Value::Object(map) => map
                .iter()
                .flat_map(|(key, value)| leaves(value, &format!("{path}/{key}")))
                .collect(),
            other => vec![(path.to_owned(), other.clone())],
        }
    }

    proptest! {
        #[test]
        fn the_upper_layer_holds_the_lower_shows_where_it_is_silent_and_no_null_is_left(
            under in map_of(tree()), over in map_of(tree()),
        ) {
            let under = merged(json!({}), &under);
            let both = merged(under.clone(), &over);
            for (path, value) in leaves(&over, "") {
                let expected = Some(&value).filter(|value| !value.is_null());
                prop_assert_eq!(both.pointer(&path), expected, "{}", path);
            }
            for (path, value) in leaves(&both, "") {
                prop_assert!(!value.is_null());
                prop_assert!([over.pointer(&path), under.pointer(&path)].contains(&Some(&value)), "{} came from nowhere", path);
            }
            for (path, value) in leaves(&under, "") {
                let touched = path.match_indices('/').skip(1).map(|(end, _)| end).chain([path.len()])
                    .any(|end| over.pointer(&path[..end]).is_some_and(|value| end == path.len() || !value.is_object()));
                prop_assert!(touched || both.pointer(&path) == Some(&value), "{} was lost", path);
            }
            prop_assert_eq!(merged(both.clone(), &over), both.clone());
            prop_assert_eq!(merged(both.clone(), &json!({})), both);
        }
    }
}
