//! Embedded data of a real API server about its built-in kinds: discovery, table columns, initial objects, schemas and
//! `OpenAPI` documents. `examples/dump.rs` creates these files. Each is unpacked on first use, so a test that never
//! uses `OpenAPI` does not pay for it.

use std::sync::LazyLock;

use ruzstd::{decoding::StreamingDecoder, io::Read as _};
use serde_json::{Map, Value};

static START: LazyLock<Map<String, Value>> =
    LazyLock::new(|| unpack(include_bytes!("../data/start.json.zst")));
static SCHEMAS: LazyLock<Map<String, Value>> =
    LazyLock::new(|| unpack(include_bytes!("../data/schemas.json.zst")));
static DOCUMENTS: LazyLock<Map<String, Value>> =
    LazyLock::new(|| unpack(include_bytes!("../data/documents.json.zst")));

static PROTOBUF: LazyLock<Map<String, Value>> =
    LazyLock::new(|| unpack(include_bytes!("../data/protobuf.json.zst")));

fn unpack(packed: &[u8]) -> Map<String, Value> {
    let mut json = Vec::new();
    let read = StreamingDecoder::new(packed)
        .map_err(|error| error.to_string())
        .and_then(|mut decoder| decoder.read_to_end(&mut json).map_err(|error| error.to_string()));
    if let Err(error) = read {
        // The files are part of the program, and a test reads each of them.
        tracing::error!(error, "the embedded API documents cannot be unpacked");
    }
    serde_json::from_slice(&json).unwrap_or_default()
}

fn start(section: &str) -> &'static Value {
    START.get(section).unwrap_or(&Value::Null)
}

/// The response of `/version`.
pub(crate) fn version() -> &'static Value {
    start("version")
}

/// The built-in API groups in the format of aggregated discovery, the core group first.
pub(crate) fn groups() -> impl Iterator<Item = &'static Value> {
    ["api", "apis"]
        .into_iter()
        .filter_map(|section| start(section).get("items")?.as_array())
        .flatten()
}

/// The table columns of a built-in resource, named `group/version/plural`.
pub(crate) fn table_columns(resource: &str) -> Option<&'static Value> {
    start("tables").get(resource)
}

/// The objects that a fresh server creates: namespaces, roles, bindings, priority classes.
pub(crate) fn bootstrap() -> impl Iterator<Item = &'static Value> {
    start("bootstrap").as_array().into_iter().flatten()
}

/// All built-in schemas by their full name.
pub(crate) fn schemas() -> &'static Map<String, Value> {
    &SCHEMAS
}

/// The `OpenAPI` documents by path (`apis/apps/v1`). A null schema in a document refers to [`schemas`].
pub(crate) fn documents() -> &'static Map<String, Value> {
    &DOCUMENTS
}

/// The numbers of protobuf fields by the full name of their type. `examples/protobuf.rs` creates the file.
pub(crate) fn protobuf_fields() -> &'static Map<String, Value> {
    &PROTOBUF
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_unpacks() {
        assert_eq!(version()["major"], "1");
        assert!(groups().count() > 15);
        assert!(bootstrap().any(|object| object["metadata"]["name"] == "cluster-admin"));
        assert!(table_columns("apps/v1/deployments").is_some());
        assert!(schemas().contains_key("io.k8s.api.core.v1.Pod"));
        assert!(documents().contains_key("apis/apps/v1"));
        assert!(protobuf_fields().contains_key("io.k8s.api.core.v1.Pod"));
    }
}
