//! The hash of an intent, which is stored on the child. It reveals that a field was removed from the intent, which a
//! comparison with the child alone cannot.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// The hash of an object. It does not depend on the order of fields. The values of a Secret are excluded: everyone who
/// may read metadata could try to guess them from the hash.
pub(super) fn hash(body: &Value) -> String {
    let mut canonical = canonical(body);
    if body.get("kind").is_some_and(|kind| kind == "Secret")
        && let Some(Value::Object(data)) = canonical.get_mut("data")
    {
        data.values_mut().for_each(|value| *value = Value::Null);
    }
    let digest = Sha256::digest(canonical.to_string());
    // 132 bits, in characters that are valid in an annotation.
    BASE64_URL_SAFE_NO_PAD.encode(digest).chars().take(22).collect()
}

/// The value with all keys in order.
fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            let canonical = |(name, field): (&String, &Value)| (name.clone(), canonical(field));
            Value::Object(fields.into_iter().map(canonical).collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(canonical).collect(),
        scalar => scalar.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::hash;

    #[test]
    fn order_is_nothing_and_place_is_everything() {
        let one = json!({ "a": { "b": 1 }, "c": [1, 2] });
        assert_eq!(hash(&one), hash(&json!({ "c": [1, 2], "a": { "b": 1 } })));
        for other in [
            json!({ "a": { "b": 1, "c": [1, 2] } }),
            json!({ "a": { "b": 1 }, "c": [2, 1] }),
            json!({ "a": { "b": "1" }, "c": [1, 2] }),
            json!({ "a": { "b": 1 } }),
        ] {
            assert_ne!(hash(&one), hash(&other), "{other}");
        }
    }

    #[test]
    fn the_keys_of_a_secret_count_and_its_values_do_not() {
        let secret = |data| json!({ "kind": "Secret", "data": data });
        let one = hash(&secret(json!({ "a": "MQ==", "b": "MQ==" })));
        assert_eq!(one, hash(&secret(json!({ "b": "Mg==", "a": "Mg==" }))));
        assert_ne!(one, hash(&secret(json!({ "a": "MQ==" }))));
        let map = |value: &str| hash(&json!({ "kind": "ConfigMap", "data": { "a": value } }));
        assert_ne!(map("1"), map("2"));
    }
}
