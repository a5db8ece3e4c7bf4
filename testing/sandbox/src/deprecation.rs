//! Deprecated versions: every response about one contains a warning.

use serde_json::{Value, json};

use crate::discovery;
use crate::store::text;

/// The deprecated built-in kinds. The original's documents do not list them.
const BUILT_IN: &[(&str, &str)] = &[
    ("ComponentStatus", "v1 ComponentStatus is deprecated in v1.19+"),
    (
        "Endpoints",
        "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    ),
];

/// The warning for a built-in kind.
pub(crate) fn of_built_in(group: &str, kind: &str) -> Option<String> {
    let (_, warning) = BUILT_IN
        .iter()
        .find(|(known, _)| group.is_empty() && *known == kind)?;
    Some((*warning).to_owned())
}

/// The warning for a deprecated version of a CRD: its own, or one that names the newest version.
pub(crate) fn of_custom(spec: &Value, version: &Value) -> Option<String> {
    let is = |version: &Value, key: &str| version.get(key) == Some(&json!(true));
    if !is(version, "deprecated") {
        return None;
    }
    if let Some(own) = version.get("deprecationWarning").and_then(Value::as_str) {
        return Some(own.to_owned());
    }
    let name = |version: &Value| text(version, "/name").to_owned();
    let shown = |version: &str| format!("{}/{version} {}", text(spec, "/group"), text(spec, "/names/kind"));
    let versions = spec.get("versions").and_then(Value::as_array);
    let better = versions
        .into_iter()
        .flatten()
        .filter(|other| is(other, "served") && !is(other, "deprecated"))
        .map(name)
        .filter(|other| discovery::priority(other) > discovery::priority(&name(version)))
        .max_by_key(|other| discovery::priority(other));
    let instead = better.map_or_else(String::new, |better| format!("; use {}", shown(&better)));
    Some(format!("{} is deprecated{instead}", shown(&name(version))))
}
