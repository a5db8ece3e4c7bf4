//! YAML for `kubectl apply`.

use serde::Serialize;

/// One document. Only Kubernetes objects are serialized here, whose keys are strings and whose numbers are plain, so
/// serialization does not fail.
pub(crate) fn document(object: &impl Serialize) -> Result<String, serde_saphyr::ser::Error> {
    let options = serde_saphyr::ser_options! { compact_list_indent: true };
    serde_saphyr::to_string_with_options(object, options)
}

/// Several documents in one stream.
pub(crate) fn stream(objects: &[impl Serialize]) -> Result<String, serde_saphyr::ser::Error> {
    let documents: Result<Vec<String>, _> = objects.iter().map(document).collect();
    Ok(documents?.join("---\n"))
}
