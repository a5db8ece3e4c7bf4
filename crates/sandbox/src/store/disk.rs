//! Keeping the state on disk between runs: one file with all objects, replaced as a whole.

use std::io;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{Expect, Store};
use crate::private;

impl Store {
    /// All objects and the revision, as one value.
    fn export(&self) -> Value {
        let mut kinds = Map::new();
        for storage in self.storages() {
            let objects: Map<String, Value> = self
                .list(&storage, None)
                .objects
                .into_iter()
                .map(|(key, object)| (key.to_string(), object.value().clone()))
                .collect();
            kinds.insert(storage.to_string(), Value::Object(objects));
        }
        json!({"revision": self.revision(), "kinds": kinds})
    }

    /// Writes the state, so that a crash leaves the old file or the new one.
    pub(crate) fn save(&self, path: &Path) -> io::Result<()> {
        private::write(path, &self.export().to_string())
    }

    /// Reads a state that was saved. Revisions go on from where they were, so no client sees one twice.
    pub(crate) fn load(&self, path: &Path) -> io::Result<()> {
        let saved: Value = serde_json::from_slice(&std::fs::read(path)?)?;
        let revision = saved.get("revision").and_then(Value::as_u64).unwrap_or(1);
        {
            let mut inner = self.lock();
            inner.revision = inner.revision.max(revision);
        }
        for (storage, objects) in saved
            .get("kinds")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            let storage: Arc<str> = storage.as_str().into();
            for (key, object) in objects.as_object().into_iter().flatten() {
                let _ = self.put(&storage, key, Expect::Absent, object.clone());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_saved_state_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state.json");
        let store = Store::new();
        let kind: Arc<str> = "/configmaps".into();
        store
            .put(
                &kind,
                "a/b",
                Expect::Absent,
                json!({"metadata": {"name": "b"}, "data": {"x": "1"}}),
            )
            .unwrap();
        store.save(&file).unwrap();
        let again = Store::new();
        again.load(&file).unwrap();
        assert_eq!(again.get(&kind, "a/b").unwrap().value()["data"]["x"], "1");
        assert!(again.revision() > store.revision());
    }
}
