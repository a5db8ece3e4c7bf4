//! Keeps the state on disk between runs: every change is appended to one file before the response is sent. A kill loses
//! no change: everything that an operator has created elsewhere by then, such as roles in a database, belongs to
//! objects that still exist. (A power failure may lose the last changes: the file is not synced.)
//!
//! The first line is a revision. Each other line is a state of an object, `[revision, kind, key, object]`, or its
//! deletion, with null for the object. The file is rewritten at the start, and when it has grown a lot.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use super::{Change, Expect, Inner, Store};
use crate::private;

/// Number of bytes that the file may grow before it is rewritten.
const GROWTH: usize = 64 << 20;

/// The open file.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    file: File,
    grown: usize,
}

impl Journal {
    /// Writes the file with the current state.
    fn begin(path: &Path, inner: &Inner) -> io::Result<Self> {
        let mut text = format!("{}\n", inner.revision);
        for (storage, kind) in &inner.kinds {
            for (key, object) in &kind.objects {
                text += &line(object.revision(), storage, key, Some(&object.json()));
            }
        }
        private::write(path, &text)?;
        Ok(Self {
            path: path.to_owned(),
            file: OpenOptions::new().append(true).open(path)?,
            grown: 0,
        })
    }

    fn add(&mut self, storage: &str, change: &Change) -> io::Result<()> {
        let object = (!change.deleted).then(|| change.after.json());
        let line = line(change.revision, storage, &change.key, object.as_deref());
        self.grown += line.len();
        self.file.write_all(line.as_bytes())
    }
}

fn line(revision: u64, storage: &str, key: &str, object: Option<&[u8]>) -> String {
    let object = object.map_or("null".into(), String::from_utf8_lossy);
    format!("[{revision},{},{},{object}]\n", json!(storage), json!(key))
}

impl Inner {
    /// Appends a change, if persistence is enabled.
    pub(super) fn note(&mut self, storage: &str, change: &Change) {
        let Some(mut journal) = self.journal.take() else {
            return;
        };
        let noted = journal.add(storage, change).and_then(|()| {
            if journal.grown > GROWTH {
                journal = Journal::begin(&journal.path, self)?;
            }
            Ok(())
        });
        if let Err(error) = noted {
            tracing::error!(%error, path = %journal.path.display(), "a change of the sandbox's state was not saved");
        }
        self.journal = Some(journal);
    }
}

impl Store {
    /// Loads the state from the file, and persists changes from now on. Revisions continue, so no client sees one
    /// twice.
    pub(crate) fn keep(&self, path: &Path) -> io::Result<()> {
        if path.exists() {
            self.load(&std::fs::read_to_string(path)?)?;
        }
        let mut inner = self.lock();
        inner.journal = Some(Journal::begin(path, &inner)?);
        Ok(())
    }

    fn load(&self, text: &str) -> io::Result<()> {
        let mut objects = BTreeMap::new();
        let mut newest = 1;
        // If the process was killed while it wrote a line, it had not sent the response.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        for line in whole.lines() {
            match serde_json::from_str(line)? {
                Line::Revision(revision) => newest = revision,
                Line::State(revision, storage, key, object) => {
                    newest = newest.max(revision);
                    objects.insert((storage, key), object);
                }
            }
        }
        {
            let mut inner = self.lock();
            inner.revision = inner.revision.max(newest);
        }
        for ((storage, key), object) in objects {
            if let Some(object) = object {
                let _ = self.put(&Arc::from(storage), &key, Expect::Absent, object);
            }
        }
        Ok(())
    }
}

#[derive(serde::Deserialize)]
#[serde(untagged)]
enum Line {
    Revision(u64),
    State(u64, String, String, Option<Value>),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(x: &str) -> Value {
        json!({"metadata": {"name": "b"}, "data": {"x": x}})
    }

    #[test]
    fn every_change_is_there_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state");
        let store = Store::new();
        store.keep(&file).unwrap();
        let kind: Arc<str> = "/configmaps".into();
        let put = |key, expect, x| store.put(&kind, key, expect, object(x)).unwrap();
        let first = put("a/b", Expect::Absent, "1");
        put("a/b", Expect::Revision(first.revision()), "2\n3");
        let gone = put("a/c", Expect::Absent, "4");
        store.remove(&kind, "a/c", gone.revision()).unwrap();

        // Not even dropped: as after a kill, in the middle of a line.
        let mut rest = OpenOptions::new().append(true).open(&file).unwrap();
        rest.write_all(br#"[9,"/configmaps","a/d",{"metad"#).unwrap();
        for _ in 0..2 {
            let again = Store::new();
            again.keep(&file).unwrap();
            assert_eq!(again.get(&kind, "a/b").unwrap().value()["data"]["x"], "2\n3");
            assert_eq!(again.list(&kind, None).objects.len(), 1);
            assert!(again.revision() > store.revision());
        }
    }

    #[test]
    fn what_is_no_state_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state");
        std::fs::write(&file, "1\nnothing\n").unwrap();
        assert!(Store::new().keep(&file).is_err());
    }
}
