//! Embedded resources in custom resources: they have a kind, a version and the usual metadata.

use serde_json::{Value, json};

use super::prune::join;
use super::{Schema, decode};
use crate::error::FieldError;
use crate::lifecycle;
use crate::resource::Resource;
use crate::store::text;

/// Visits all embedded resources of a value, with their paths.
fn visit<E>(
    schema: Schema<'_>,
    value: &mut Value,
    path: &str,
    see: &mut impl FnMut(&mut Value, &str) -> Result<(), E>,
) -> Result<(), E> {
    if schema.is_embedded_resource() && value.is_object() {
        see(value, path)?;
    }
    match value {
        Value::Object(map) => map
            .iter_mut()
            .try_for_each(|(key, child)| match schema.child(key) {
                Some(field) => visit(field, child, &join(path, key), see),
                None => Ok(()),
            }),
        Value::Array(items) => match schema.items() {
            Some(element) => items
                .iter_mut()
                .enumerate()
                .try_for_each(|(index, item)| visit(element, item, &format!("{path}[{index}]"), see)),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Reads the metadata of embedded resources with its type. The error is the message of the original's decoder.
pub(crate) fn typed(schema: Schema<'_>, value: &mut Value) -> Result<(), String> {
    visit(
        schema,
        value,
        "",
        &mut |embedded, _| match (Schema::object_meta(), embedded.get_mut("metadata")) {
            (Some(schema), Some(metadata)) => decode::typed(schema, metadata),
            _ => Ok(()),
        },
    )
}

/// The errors in the identity and the metadata of embedded resources.
pub(super) fn check(resource: &Resource, schema: Schema<'_>, value: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut value = value.clone();
    let seen = visit(schema, &mut value, "", &mut |embedded, path| {
        let (version, kind) = (text(embedded, "/apiVersion"), text(embedded, "/kind"));
        if version.matches('/').count() > 1 {
            let detail = format!("unexpected GroupVersion string: {version}");
            errors.push(FieldError::invalid(
                join(path, "apiVersion"),
                &json!(version),
                detail,
            ));
        }
        if !kind.is_empty() && !lifecycle::is_dns_1035_label(&kind.to_lowercase()) {
            let detail = "may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
            errors.push(FieldError::invalid(join(path, "kind"), &json!(kind), detail));
        }
        errors.extend(lifecycle::check_metadata(
            resource,
            embedded,
            &join(path, "metadata"),
        ));
        Ok::<_, std::convert::Infallible>(())
    });
    match seen {
        Ok(()) => errors,
    }
}
