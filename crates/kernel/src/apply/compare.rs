//! Whether a live child contains everything that is intended, with or without additions by the server or others.

use serde_json::Value;

/// The fields that identify the items of a list.
const NAMES: [&str; 4] = ["name", "uid", "mountPath", "ip"];

/// Whether the live value contains everything that is intended.
pub(super) fn contains(live: &Value, intent: &Value) -> bool {
    match (live, intent) {
        (Value::Object(live), Value::Object(intent)) => {
            intent.iter().all(|(key, value)| match live.get(key) {
                Some(found) => contains(found, value),
                None => is_empty(value),
            })
        }
        (Value::Array(live), Value::Array(intent)) => contains_list(live, intent),
        (Value::String(live), Value::String(intent)) => {
            live == intent || quantity(live).is_some_and(|live| Some(live) == quantity(intent))
        }
        (live, intent) => live == intent,
    }
}

/// Lists of named items are compared by name, because the server and others add items; all other lists must be equal.
fn contains_list(live: &[Value], intent: &[Value]) -> bool {
    let named = |key: &&&str| {
        intent
            .iter()
            .all(|item| item.get(**key).is_some_and(Value::is_string))
    };
    match NAMES.iter().find(named) {
        Some(key) if !intent.is_empty() => intent.iter().all(|item| {
            let same_name = |candidate: &&Value| candidate.get(key) == item.get(key);
            live.iter().filter(same_name).any(|found| contains(found, item))
        }),
        _ => {
            live.len() == intent.len()
                && live
                    .iter()
                    .zip(intent)
                    .all(|(live, intent)| contains(live, intent))
        }
    }
}

/// Whether an API server omits this value.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(items) => items.is_empty(),
        // Such as the value of an environment variable.
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

/// A quantity in billionths: the API server writes `1024Mi` as `1Gi`, and `0.5` as `500m`. The sandbox has its own parser,
/// because it does not depend on the product.
pub(crate) fn quantity(text: &str) -> Option<i128> {
    const BILLION: i128 = 1_000_000_000;
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at_checked(end)?;
    let thousands = |power: u32| 1000_i128.checked_pow(power);
    let factor = match suffix {
        "n" => 1,
        "u" => 1_000,
        "m" => 1_000_000,
        "" => BILLION,
        "k" => BILLION * thousands(1)?,
        "M" => BILLION * thousands(2)?,
        "G" => BILLION * thousands(3)?,
        "T" => BILLION * thousands(4)?,
        "P" => BILLION * thousands(5)?,
        "E" => BILLION * thousands(6)?,
        binary => {
            let power = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]
                .iter()
                .position(|unit| *unit == binary)?;
            BILLION << (10 * (power + 1))
        }
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
    let scaled = digits.checked_mul(factor)?;
    let divisor = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    (scaled % divisor == 0).then(|| scaled / divisor)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{contains, quantity};

    /// Live value, intended value, and whether it is contained.
    fn table() -> Vec<(Value, Value, bool)> {
        vec![
            // Additions of others are ignored.
            (json!({ "a": 1, "b": 2 }), json!({ "a": 1 }), true),
            (json!({ "a": 2 }), json!({ "a": 1 }), false),
            (json!({}), json!({ "a": 1 }), false),
            (json!({}), json!({ "a": null, "b": {}, "c": [], "d": "" }), true),
            (json!({ "a": { "x": 1 } }), json!({ "a": {} }), true),
            (json!({ "a": [1] }), json!({ "a": [] }), false),
            // Lists of named items, in any order and with additions.
            (
                json!([{ "name": "b", "v": 2 }, { "name": "a", "v": 1, "more": true }]),
                json!([{ "name": "a", "v": 1 }]),
                true,
            ),
            (
                json!([{ "name": "a", "v": 2 }]),
                json!([{ "name": "a", "v": 1 }]),
                false,
            ),
            (
                json!([{ "name": "b", "v": 1 }]),
                json!([{ "name": "a", "v": 1 }]),
                false,
            ),
            // All other lists must be equal.
            (json!(["x", "y"]), json!(["x"]), false),
            (json!(["y", "x"]), json!(["x", "y"]), false),
            (
                json!([{ "port": 1, "protocol": "TCP" }]),
                json!([{ "port": 1 }]),
                true,
            ),
            // The server's canonical form of a quantity.
            (json!({ "memory": "1Gi" }), json!({ "memory": "1024Mi" }), true),
            (json!({ "cpu": "500m" }), json!({ "cpu": "0.5" }), true),
            (json!({ "cpu": "500m" }), json!({ "cpu": "0.6" }), false),
            (json!({ "text": "a" }), json!({ "text": "b" }), false),
        ]
    }

    #[test]
    fn what_is_intended_is_there_or_not() {
        for (live, intent, expected) in table() {
            assert_eq!(contains(&live, &intent), expected, "{live} for {intent}");
        }
    }

    #[test]
    fn quantities_are_numbers_and_words_are_not() {
        assert_eq!(quantity("1.5Gi"), quantity("1536Mi"));
        assert_eq!(quantity("1024Pi"), quantity("1Ei"));
        assert_eq!(quantity("2k"), quantity("2000"));
        assert_eq!(quantity("1000P"), quantity("1E"));
        assert_eq!(quantity("100m"), quantity("0.1"));
        for word in [
            "",
            "m",
            "Gi",
            "1x",
            "-1",
            "1..2",
            "v1",
            "999999999999999999999999999999999999999999",
        ] {
            assert_eq!(quantity(word), None, "{word}");
        }
    }
}
