//! The environment of a container that runs as a process: plain values, Secrets, `ConfigMaps`, fields of the pod.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;

use crate::store::{self, Object, Store, text};

/// The environment of a container, or the first missing object that it needs.
pub(super) fn environment(
    store: &Store,
    pod: &Object,
    container: &Value,
) -> Result<Vec<(String, String)>, String> {
    let list = |key: &str| container.get(key).and_then(Value::as_array).into_iter().flatten();
    let mut variables = Vec::new();
    for source in list("envFrom") {
        for kind in ["secretRef", "configMapRef"] {
            if let Some(reference) = source.get(kind) {
                let data = data(store, pod, kind, text(reference, "/name"))?;
                variables.extend(
                    data.into_iter()
                        .map(|(key, value)| (format!("{}{key}", text(source, "/prefix")), value)),
                );
            }
        }
    }
    for variable in list("env") {
        let name = text(variable, "/name").to_owned();
        let value = match variable.get("valueFrom") {
            None => Some(expand(text(variable, "/value"), &variables)),
            Some(source) => from_source(store, pod, source)?,
        };
        variables.extend(value.map(|value| (name, value)));
    }
    Ok(variables)
}

/// Replaces `$(NAME)` with the values of variables. Unknown names stay, and `$$` becomes `$`.
pub(super) fn expand(text: &str, known: &[(String, String)]) -> String {
    let (mut expanded, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('$') {
        expanded.push_str(before);
        let named = after.strip_prefix('(').and_then(|inner| inner.split_once(')'));
        rest = match (after.strip_prefix('$'), named) {
            (Some(after), _) => {
                expanded.push('$');
                after
            }
            (None, Some((name, after))) => {
                // The last variable of a name wins.
                match known.iter().rev().find(|(known, _)| known == name) {
                    Some((_, value)) => expanded.push_str(value),
                    None => expanded.extend(["$(", name, ")"]),
                }
                after
            }
            (None, None) => {
                expanded.push('$');
                after
            }
        };
    }
    expanded + rest
}

fn from_source(store: &Store, pod: &Object, source: &Value) -> Result<Option<String>, String> {
    if let Some(field) = source.get("fieldRef") {
        let pointer = format!("/{}", text(field, "/fieldPath").replace('.', "/"));
        return Ok(Some(pod.text(&pointer).to_owned()));
    }
    for (key, kind) in [("secretKeyRef", "secretRef"), ("configMapKeyRef", "configMapRef")] {
        let Some(reference) = source.get(key) else {
            continue;
        };
        let (name, wanted) = (text(reference, "/name"), text(reference, "/key"));
        let found = data(store, pod, kind, name).and_then(|data| {
            let value = data
                .into_iter()
                .find(|(key, _)| key == wanted)
                .map(|(_, value)| value);
            value.ok_or_else(|| format!("couldn't find key {wanted} in {}/{name}", pod.namespace()))
        });
        let optional = reference
            .get("optional")
            .and_then(Value::as_bool)
            .unwrap_or_default();
        return if optional { Ok(found.ok()) } else { found.map(Some) };
    }
    Ok(None)
}

/// The entries of a Secret or a `ConfigMap`.
fn data(store: &Store, pod: &Object, kind: &str, name: &str) -> Result<Vec<(String, String)>, String> {
    let (storage, word) = if kind == "secretRef" {
        ("/secrets", "secret")
    } else {
        ("/configmaps", "configmap")
    };
    let object = store.get(storage, &store::key(pod.namespace(), name));
    let object = object.ok_or_else(|| format!("{word} \"{name}\" not found"))?;
    let entries = object
        .value()
        .get("data")
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    let plain = |value: &str| match kind {
        "secretRef" => String::from_utf8_lossy(&STANDARD.decode(value).unwrap_or_default()).into_owned(),
        _ => value.to_owned(),
    };
    Ok(entries
        .map(|(key, value)| (key.clone(), plain(value.as_str().unwrap_or_default())))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_expanded_as_kubernetes_does_it() {
        let known = [("USER", "me"), ("PASSWORD", "a$b"), ("USER", "you")];
        let known = known.map(|(name, value)| (name.to_owned(), value.to_owned()));
        for (text, expanded) in [
            ("plain", "plain"),
            ("$(USER):$(PASSWORD)@host", "you:a$b@host"),
            (
                "$(OTHER) $$(USER) $USER $(open $",
                "$(OTHER) $(USER) $USER $(open $",
            ),
        ] {
            assert_eq!(expand(text, &known), expanded);
        }
    }
}
