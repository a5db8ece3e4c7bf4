//! Recent events, so that a repetition increases a count instead of creating a new Event.

use std::{collections::HashMap, time::Duration};

use tokio::time::Instant;

use super::EventRecord;

/// A repetition within this time belongs to the series; client-go uses the same six minutes.
pub(super) const WINDOW: Duration = Duration::from_mins(6);
/// Limits the memory. A dropped series starts again with a new Event.
pub(super) const CAPACITY: usize = 1024;

/// The identity of an event. The note is part of it: the API server does not allow to change the note of an Event, so a
/// new message needs a new Event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) regarding: String,
    pub(super) record: EventRecord,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Name of the Event.
    pub(super) name: String,
    /// The number of occurrences so far.
    pub(super) count: i32,
    last: Instant,
}

/// The recent events, at most [`CAPACITY`] of them.
#[derive(Debug, Default)]
pub(super) struct Recent(HashMap<Key, Entry>);

impl Recent {
    /// Counts one more occurrence, if the event is known and recent.
    pub(super) fn again(&mut self, key: &Key, now: Instant) -> Option<Entry> {
        let entry = self
            .0
            .get_mut(key)
            .filter(|entry| now.duration_since(entry.last) < WINDOW)?;
        entry.count = entry.count.saturating_add(1);
        entry.last = now;
        Some(entry.clone())
    }

    /// Records an event that was just created.
    pub(super) fn created(&mut self, key: Key, name: String, now: Instant) {
        if self.0.len() >= CAPACITY {
            self.0.retain(|_, entry| now.duration_since(entry.last) < WINDOW);
        }
        if self.0.len() >= CAPACITY
            && let Some(oldest) = self
                .0
                .iter()
                .min_by_key(|(_, entry)| entry.last)
                .map(|(key, _)| key.clone())
        {
            self.0.remove(&oldest);
        }
        self.0.insert(
            key,
            Entry {
                name,
                count: 1,
                last: now,
            },
        );
    }

    /// Drops an event that no longer exists in the cluster.
    pub(super) fn forget(&mut self, key: &Key) {
        self.0.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::{super::Severity, *};

    fn key(note: &str) -> Key {
        let record = EventRecord {
            kind: Severity::Normal,
            reason: "Created".into(),
            action: "Reconcile".into(),
            note: note.into(),
        };
        Key {
            regarding: "uid".into(),
            record,
        }
    }

    #[test]
    fn repetitions_count_up_within_the_window_only() {
        let (mut recent, start) = (Recent::default(), Instant::now());
        assert_eq!(recent.again(&key("a"), start), None);
        recent.created(key("a"), "a.1".into(), start);
        let later = start + WINDOW - Duration::from_secs(1);
        assert_eq!(recent.again(&key("a"), later).unwrap().count, 2);
        assert_eq!(
            recent
                .again(&key("a"), later + Duration::from_mins(1))
                .unwrap()
                .count,
            3
        );
        assert_eq!(
            recent.again(&key("a"), later + Duration::from_mins(1) + WINDOW),
            None
        );
        assert_eq!(recent.again(&key("another note"), later), None);
    }

    #[test]
    fn the_memory_is_bounded_and_keeps_the_newest() {
        let (mut recent, start) = (Recent::default(), Instant::now());
        for i in 0..CAPACITY as u64 + 50 {
            let note = format!("note {i}");
            recent.created(key(&note), note.clone(), start + Duration::from_millis(i));
        }
        assert_eq!(recent.0.len(), CAPACITY);
        let now = start + Duration::from_secs(10);
        assert_eq!(recent.again(&key("note 49"), now), None);
        assert!(recent.again(&key("note 50"), now).is_some());
    }
}
