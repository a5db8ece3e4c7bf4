//! The derived Secrets of an instance: the buckets in three formats.

use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use stanchion_kernel::Problem;

use crate::storage::{Buckets, Derived};

/// Their names.
pub fn names(instance: &str) -> [String; 3] {
    Derived::ALL.map(|derived| derived.name(instance))
}

/// The Secrets.
pub fn objects(instance: &str, buckets: &Buckets) -> Result<Vec<Value>, Problem> {
    let object = |derived: Derived| {
        let text = derived.text(instance, buckets).map_err(|error| {
            Problem::permanent("Unserializable", "a Secret could not be written down").caused_by(error)
        })?;
        Ok(json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": { "name": derived.name(instance) },
            "type": "Opaque",
            "stringData": { derived.key(): text.expose_secret() },
        }))
    };
    Derived::ALL.into_iter().map(object).collect()
}
