//! Versions that are still served and should not be used any more: every answer about one carries a warning.

use serde_json::{Value, json};

use crate::discovery;
use crate::store::text;

/// The built-in kinds that the original warns of. No document that it serves says so.
const BUILT_IN: &[(&str, &str)] = &[
    ("ComponentStatus", "v1 ComponentStatus is deprecated in v1.19+"),
    (
        "Endpoints",
        "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    ),
];

/// The warning of a built-in kind.
pub(crate) fn of_built_in(group: &str, kind: &str) -> Option<String> {
    let (_, warning) = BUILT_IN
        .iter()
        .find(|(known, _)| group.is_empty() && *known == kind)?;
    Some((*warning).to_owned())
}

/// The warning of a deprecated version of a CRD: its own, or one that names the newest version to use instead.
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
