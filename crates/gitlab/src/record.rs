//! Records the version that ran last, beyond the life of an instance: database migrations cannot be undone, and the
//! database stays when the instance is deleted.
//!
//! GitLab's database does not contain its version. So a `ConfigMap` records it, together with the identity of the
//! database: another database has another history.

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use crate::account::INSTANCE;
use crate::versions::Version;

const VERSION: &str = "version";
const DATABASE: &str = "database";

/// The name of an instance's record.
pub(crate) fn name(instance: &str) -> String {
    format!("{instance}-gitlab-installed")
}

/// The record that this version runs on this database.
pub(crate) fn object(instance: &str, version: Version, database: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": name(instance), "labels": { INSTANCE: instance } },
        "data": { VERSION: version.to_string(), DATABASE: database },
    })
}

/// The version that ran last on this database, if recorded.
pub(crate) fn version(record: &ConfigMap, database: &str) -> Option<Version> {
    let data = record.data.as_ref()?;
    let is_same = data.get(DATABASE).map(String::as_str) == Some(database);
    data.get(VERSION).filter(|_| is_same)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_speaks_of_one_database() {
        let record: ConfigMap =
            serde_json::from_value(object("shop", Version::new(18, 2, 8), "PerconaPGCluster/1")).unwrap();
        assert_eq!(
            version(&record, "PerconaPGCluster/1"),
            Some(Version::new(18, 2, 8))
        );
        assert_eq!(version(&record, "PerconaPGCluster/2"), None);
        assert_eq!(version(&ConfigMap::default(), "PerconaPGCluster/1"), None);
    }
}
