//! A watch: a cursor into the log of a kind that waits for new changes.

use std::pin::pin;
use std::sync::Arc;

use super::{Change, KindChange, OutOfRange, Store};

/// A reader's position in the log of one kind.
#[derive(Debug)]
pub(crate) struct Cursor {
    store: Arc<Store>,
    storage: Arc<str>,
    seen: u64,
    /// Counts as a reader while this is there.
    _reader: tokio::sync::watch::Receiver<u64>,
}

impl Cursor {
    /// Reads changes after `revision`.
    pub(crate) fn new(store: &Arc<Store>, storage: &Arc<str>, revision: u64) -> Self {
        Self {
            store: store.clone(),
            storage: storage.clone(),
            seen: revision,
            _reader: store.reader(),
        }
    }

    /// The revision up to which everything has been read.
    pub(crate) fn seen(&self) -> u64 {
        self.seen
    }

    /// The next changes, at least one; waits for them.
    pub(crate) async fn next(&mut self) -> Result<Vec<Change>, OutOfRange> {
        loop {
            let store = Arc::clone(&self.store);
            let mut news = pin!(store.news());
            news.as_mut().enable();
            let changes = self.poll()?;
            if !changes.is_empty() {
                return Ok(changes);
            }
            news.await;
        }
    }

    /// The changes that are available now.
    pub(crate) fn poll(&mut self) -> Result<Vec<Change>, OutOfRange> {
        let (changes, revision) = self.store.changes(&self.storage, self.seen)?;
        self.seen = revision;
        Ok(changes)
    }
}

/// The changes of all kinds, for controllers.
#[derive(Debug)]
pub(crate) struct Feed {
    store: Arc<Store>,
    seen: u64,
    /// Counts as a reader while this is there.
    _reader: tokio::sync::watch::Receiver<u64>,
}

impl Feed {
    /// Reads everything from the beginning.
    pub(crate) fn new(store: &Arc<Store>) -> Self {
        Self {
            store: store.clone(),
            seen: 0,
            _reader: store.reader(),
        }
    }

    /// The next changes with their kinds. A reader that fell behind gets the complete current state instead.
    pub(crate) async fn next(&mut self) -> Vec<KindChange> {
        loop {
            let store = Arc::clone(&self.store);
            let mut news = pin!(store.news());
            news.as_mut().enable();
            let (changes, revision) = self
                .store
                .all_changes(self.seen)
                .unwrap_or_else(|| self.everything());
            self.seen = revision;
            if !changes.is_empty() {
                return changes;
            }
            news.await;
        }
    }

    fn everything(&self) -> (Vec<KindChange>, u64) {
        let revision = self.store.revision();
        let mut changes = Vec::new();
        for storage in self.store.storages() {
            for (key, after) in self.store.list(&storage, None).objects {
                let change = Change {
                    revision: after.revision(),
                    key,
                    before: None,
                    after,
                    deleted: false,
                };
                changes.push((storage.clone(), change));
            }
        }
        (changes, revision)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Expect;
    use serde_json::json;

    #[tokio::test]
    async fn a_cursor_sees_every_change_once_and_in_order() {
        let store = Arc::new(Store::new());
        let kind: Arc<str> = "/configmaps".into();
        let mut cursor = Cursor::new(&store, &kind, store.revision());
        let writer = tokio::spawn({
            let (store, kind) = (store.clone(), kind.clone());
            async move {
                for n in 0..500 {
                    store
                        .put(&kind, &format!("n/{n}"), Expect::Absent, json!({"metadata": {}}))
                        .unwrap();
                    if n % 7 == 0 {
                        tokio::task::yield_now().await;
                    }
                }
            }
        });
        let mut seen = Vec::new();
        while seen.len() < 500 {
            seen.extend(
                cursor
                    .next()
                    .await
                    .unwrap()
                    .into_iter()
                    .map(|change| change.revision),
            );
        }
        writer.await.unwrap();
        assert!(seen.windows(2).all(|pair| pair[0] < pair[1]));
        store.compact();
        let mut late = Cursor::new(&store, &kind, 3);
        assert!(matches!(late.next().await, Err(OutOfRange::Compacted)));
    }
}
