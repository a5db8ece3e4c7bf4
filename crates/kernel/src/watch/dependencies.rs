//! The index from what was read to the objects that read it.
//!
//! A controller does not declare which Secret wakes which object: what a reconcile reads through its
//! [`Reader`](crate::Reader) wakes it. An entry is made *before* the read, so a change between the read and the end of
//! the reconcile is never missed; the version is recorded after the read, so that a watch which repeats old events
//! wakes nothing.

use std::collections::{HashMap, HashSet};

use kube::core::{ApiResource, ObjectMeta};
use parking_lot::Mutex;

/// The name of an object of any kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reference {
    /// `group/Kind`; the version does not matter for identity.
    pub kind: String,
    /// Empty for a cluster-scoped kind.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl Reference {
    /// A reference by kind and name.
    pub fn new(resource: &ApiResource, namespace: Option<&str>, name: &str) -> Self {
        Self {
            kind: kind_key(resource),
            namespace: namespace.unwrap_or_default().into(),
            name: name.into(),
        }
    }

    /// The reference to the object of an event.
    pub fn of(kind: &str, meta: &ObjectMeta) -> Self {
        Self {
            kind: kind.into(),
            namespace: meta.namespace.clone().unwrap_or_default(),
            name: meta.name.clone().unwrap_or_default(),
        }
    }
}

/// A kind without its version.
pub fn kind_key(resource: &ApiResource) -> String {
    format!("{}/{}", resource.group, resource.kind)
}

/// One of our objects, as a key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// What a reader knows about an object that it read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownVersion {
    /// The read is running: any event may be newer.
    Nothing,
    /// It did not exist.
    Absent,
    /// It existed, with this resource version.
    At(u64),
    /// A watch has reported something newer, with this resource version if it is known.
    Stale(Option<u64>),
}

impl KnownVersion {
    /// What a read returned.
    pub fn from_read(meta: Option<&ObjectMeta>) -> Self {
        meta.map_or(Self::Absent, |meta| version(meta).map_or(Self::Nothing, Self::At))
    }
}

/// A resource version as a number. Kubernetes guarantees since 1.35 that they are ordered, which was always the case.
pub fn version(meta: &ObjectMeta) -> Option<u64> {
    meta.resource_version.as_deref()?.parse().ok()
}

#[derive(Default)]
struct Index {
    readers: HashMap<Reference, HashMap<Key, KnownVersion>>,
    reads: HashMap<Key, HashSet<Reference>>,
}

/// The index of one controller. Its size grows with our own objects, not with the cluster.
#[derive(Default)]
pub struct Dependencies(Mutex<Index>);

impl Dependencies {
    /// Records that `reader` is about to read `what`.
    pub fn begin_read(&self, reader: &Key, what: &Reference) {
        let mut index = self.0.lock();
        index
            .readers
            .entry(what.clone())
            .or_default()
            .insert(reader.clone(), KnownVersion::Nothing);
        index
            .reads
            .entry(reader.clone())
            .or_default()
            .insert(what.clone());
    }

    /// Records the result of the read, unless a watch has already reported something newer.
    pub fn finish_read(&self, reader: &Key, what: &Reference, known: KnownVersion) {
        if let Some(slot) = self
            .0
            .lock()
            .readers
            .get_mut(what)
            .and_then(|readers| readers.get_mut(reader))
        {
            let newer = match (*slot, known) {
                (KnownVersion::Stale(Some(watched)), KnownVersion::At(read)) => read >= watched,
                (KnownVersion::Stale(_), _) => false,
                _ => true,
            };
            if newer {
                *slot = known;
            }
        }
    }

    /// Records the result of a write.
    pub fn record_write(&self, writer: &Key, what: &Reference, known: KnownVersion) {
        {
            let mut index = self.0.lock();
            let readers = index.readers.entry(what.clone()).or_default();
            readers.entry(writer.clone()).or_insert(known);
            index
                .reads
                .entry(writer.clone())
                .or_default()
                .insert(what.clone());
        }
        self.finish_read(writer, what, known);
    }

    /// Whether the reader has read the object, and no watch has reported anything newer since.
    pub fn is_unchanged(&self, reader: &Key, what: &Reference) -> bool {
        let index = self.0.lock();
        let known = index.readers.get(what).and_then(|readers| readers.get(reader));
        matches!(known, Some(KnownVersion::At(_) | KnownVersion::Absent))
    }

    /// Keeps only what the reader read in the pass that has just ended.
    pub fn keep(&self, reader: &Key, read: &HashSet<Reference>) {
        let mut index = self.0.lock();
        let Some(before) = index.reads.get_mut(reader) else {
            return;
        };
        let stale: Vec<Reference> = before.difference(read).cloned().collect();
        before.retain(|reference| read.contains(reference));
        if before.is_empty() {
            index.reads.remove(reader);
        }
        for reference in stale {
            index.drop_reader(reader, &reference);
        }
    }

    /// Drops an object that is gone.
    pub fn forget(&self, reader: &Key) {
        self.keep(reader, &HashSet::new());
    }

    /// A watch reported the object: returns the readers of an older state.
    pub fn changed(&self, what: &Reference, version: Option<u64>) -> Vec<Key> {
        self.readers_where(what, version, |known| match (known, version) {
            (KnownVersion::At(read), Some(now)) => now > read,
            _ => true,
        })
    }

    /// A watch reported the deletion: returns the readers that found the object.
    pub fn gone(&self, what: &Reference, version: Option<u64>) -> Vec<Key> {
        self.readers_where(what, version, |known| match (known, version) {
            (KnownVersion::At(read), Some(now)) => now > read,
            (KnownVersion::Absent, _) => false,
            _ => true,
        })
    }

    /// Whether this reader knows the object at this version or a newer one.
    pub fn is_current(&self, reader: &Key, what: &Reference, version: Option<u64>) -> bool {
        let index = self.0.lock();
        let known = index.readers.get(what).and_then(|readers| readers.get(reader));
        matches!((known, version), (Some(KnownVersion::At(read)), Some(now)) if *read >= now)
    }

    /// A watch has listed its kind again: returns the readers of objects that are not in `present`.
    pub fn relisted(&self, kind: &str, namespace: Option<&str>, present: &HashSet<Reference>) -> Vec<Key> {
        let covered = |reference: &Reference| {
            reference.kind == kind && namespace.is_none_or(|namespace| reference.namespace == namespace)
        };
        let mut index = self.0.lock();
        let missing = index
            .readers
            .iter_mut()
            .filter(|(reference, _)| covered(reference) && !present.contains(reference));
        let woken = missing
            .flat_map(|(_, readers)| readers)
            // A running read may have found an object that the list no longer contains.
            .filter(|(_, known)| !matches!(known, KnownVersion::Absent))
            .map(|(key, known)| {
                *known = KnownVersion::Stale(None);
                key.clone()
            });
        in_order(woken)
    }

    fn readers_where(
        &self,
        what: &Reference,
        version: Option<u64>,
        is_stale: impl Fn(KnownVersion) -> bool,
    ) -> Vec<Key> {
        let mut index = self.0.lock();
        let readers = index.readers.get_mut(what).into_iter().flatten();
        let woken = readers
            .filter(|(_, known)| is_stale(**known))
            .map(|(key, known)| {
                *known = KnownVersion::Stale(version);
                key.clone()
            });
        in_order(woken)
    }
}

/// Objects are enqueued in a fixed order, so that a simulated run depends on its seed alone.
fn in_order(woken: impl Iterator<Item = Key>) -> Vec<Key> {
    let mut woken: Vec<Key> = woken.collect();
    woken.sort_unstable();
    woken
}

impl Index {
    fn drop_reader(&mut self, reader: &Key, reference: &Reference) {
        if let Some(readers) = self.readers.get_mut(reference) {
            readers.remove(reader);
            if readers.is_empty() {
                self.readers.remove(reference);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key {
            namespace: "ns".into(),
            name: name.into(),
        }
    }

    fn secret(name: &str) -> Reference {
        Reference {
            kind: "/Secret".into(),
            namespace: "ns".into(),
            name: name.into(),
        }
    }

    fn read(index: &Dependencies, reader: &str, what: &str, known: KnownVersion) {
        index.begin_read(&key(reader), &secret(what));
        index.finish_read(&key(reader), &secret(what), known);
    }

    #[test]
    fn only_readers_of_an_older_version_are_enqueued() {
        let index = Dependencies::default();
        read(&index, "a", "one", KnownVersion::At(3));
        read(&index, "b", "one", KnownVersion::At(5));
        read(&index, "c", "two", KnownVersion::At(1));
        assert_eq!(index.changed(&secret("one"), Some(3)), []);
        assert_eq!(index.changed(&secret("one"), Some(5)), [key("a")]);
        assert_eq!(index.gone(&secret("two"), Some(2)), [key("c")]);
        assert_eq!(index.changed(&secret("three"), Some(9)), []);
        let elsewhere = Reference {
            namespace: "other".into(),
            ..secret("one")
        };
        assert_eq!(index.changed(&elsewhere, Some(9)), []);
    }

    #[test]
    fn a_change_during_the_read_wakes() {
        let index = Dependencies::default();
        index.begin_read(&key("a"), &secret("one"));
        assert_eq!(index.changed(&secret("one"), Some(1)), [key("a")]);
    }

    #[test]
    fn a_read_is_unchanged_until_a_watch_reports_a_change() {
        let index = Dependencies::default();
        let unchanged = |index: &Dependencies| index.is_unchanged(&key("a"), &secret("one"));
        assert!(!unchanged(&index), "never read");
        read(&index, "a", "one", KnownVersion::At(3));
        assert!(unchanged(&index));
        index.changed(&secret("one"), Some(3));
        assert!(unchanged(&index), "an old story");
        index.changed(&secret("one"), Some(4));
        assert!(!unchanged(&index));
        read(&index, "a", "one", KnownVersion::At(4));
        assert!(unchanged(&index));
        index.begin_read(&key("a"), &secret("one"));
        index.changed(&secret("one"), Some(6));
        index.finish_read(&key("a"), &secret("one"), KnownVersion::At(5));
        assert!(!unchanged(&index), "the watch was faster than the read");
        index.record_write(&key("a"), &secret("one"), KnownVersion::At(7));
        assert!(unchanged(&index));
        index.gone(&secret("one"), Some(8));
        assert!(!unchanged(&index));
        index.record_write(&key("a"), &secret("made"), KnownVersion::At(1));
        assert!(
            index.is_current(&key("a"), &secret("made"), Some(1)),
            "the echo of a first write"
        );
    }

    #[test]
    fn what_was_missing_wakes_when_it_appears_and_not_when_it_goes() {
        let index = Dependencies::default();
        read(&index, "a", "one", KnownVersion::Absent);
        assert_eq!(index.gone(&secret("one"), Some(4)), []);
        assert_eq!(index.changed(&secret("one"), Some(5)), [key("a")]);
    }

    #[test]
    fn what_is_no_longer_read_no_longer_wakes() {
        let index = Dependencies::default();
        read(&index, "a", "old", KnownVersion::At(1));
        read(&index, "a", "new", KnownVersion::At(1));
        index.keep(&key("a"), &HashSet::from([secret("new")]));
        assert_eq!(index.changed(&secret("old"), Some(2)), []);
        assert_eq!(index.changed(&secret("new"), Some(2)), [key("a")]);
        index.forget(&key("a"));
        assert!(index.0.lock().readers.is_empty());
        assert!(index.0.lock().reads.is_empty());
    }

    #[test]
    fn a_deletion_in_a_gap_of_the_watch_is_noticed() {
        let index = Dependencies::default();
        read(&index, "a", "gone", KnownVersion::At(1));
        read(&index, "b", "there", KnownVersion::At(1));
        read(&index, "c", "never", KnownVersion::Absent);
        let present = HashSet::from([secret("there")]);
        assert_eq!(index.relisted("/Secret", None, &present), [key("a")]);
        assert_eq!(index.relisted("/Secret", Some("other"), &present), []);
        assert_eq!(index.relisted("/ConfigMap", None, &HashSet::new()), []);
        index.begin_read(&key("c"), &secret("never"));
        assert_eq!(
            index.relisted("/Secret", None, &HashSet::from([secret("gone"), secret("there")])),
            [key("c")]
        );
    }
}
