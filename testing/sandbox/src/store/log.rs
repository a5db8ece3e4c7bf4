//! The log of changes: recording and compaction.

use std::sync::Arc;

use super::{Change, Inner, Kind, Object};

impl Inner {
    pub(super) fn next(&mut self) -> u64 {
        self.revision += 1;
        self.revision
    }

    pub(super) fn record(
        &mut self,
        storage: &Arc<str>,
        key: &str,
        before: Option<Arc<Object>>,
        after: Arc<Object>,
        deleted: bool,
    ) {
        let kind = self.kinds.entry(storage.clone()).or_default();
        let key: Arc<str> = key.into();
        if deleted {
            kind.objects.remove(&key);
        } else {
            kind.objects.insert(key.clone(), after.clone());
        }
        let change = Change {
            revision: after.revision(),
            key,
            before,
            after,
            deleted,
        };
        kind.log.push_back(change.clone());
        if kind.log.len() > self.history
            && let Some(oldest) = kind.log.pop_front()
        {
            kind.compacted = oldest.revision;
        }
        self.note(storage, &change);
        self.feed.push_back((storage.clone(), change));
        if self.feed.len() > self.history {
            self.feed.pop_front();
        }
    }
}

impl Kind {
    pub(super) fn select(&self, namespace: Option<&str>) -> Vec<(Arc<str>, Arc<Object>)> {
        let clone = |(key, object): (&Arc<str>, &Arc<Object>)| (key.clone(), object.clone());
        match namespace {
            None => self.objects.iter().map(clone).collect(),
            Some(namespace) => {
                let from: Arc<str> = format!("{namespace}/").into();
                self.objects
                    .range(from..)
                    .take_while(|(key, _)| in_namespace(key, namespace))
                    .map(clone)
                    .collect()
            }
        }
    }
}

pub(super) fn in_namespace(key: &str, namespace: &str) -> bool {
    key.strip_prefix(namespace)
        .is_some_and(|rest| rest.starts_with('/'))
}
