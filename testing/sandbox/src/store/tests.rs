//! Unit tests of the store.

use super::*;
use serde_json::json;

fn names(snapshot: &Snapshot) -> Vec<&str> {
    snapshot.objects.iter().map(|(key, _)| &**key).collect()
}

#[test]
fn an_older_list_is_the_present_with_changes_undone() {
    let store = Store::new();
    let kind: Arc<str> = "apps/deployments".into();
    let put = |key: &str, expect, n: u64| store.put(&kind, key, expect, json!({"metadata": {}, "n": n}));
    let a = put("x/a", Expect::Absent, 1).unwrap();
    put("y/b", Expect::Absent, 1).unwrap();
    let then = store.revision();
    put("x/a", Expect::Revision(a.revision()), 2).unwrap();
    put("x/c", Expect::Absent, 1).unwrap();
    let b = store.get(&kind, "y/b").unwrap();
    store.remove(&kind, "y/b", b.revision()).unwrap();

    assert_eq!(names(&store.list(&kind, None)), ["x/a", "x/c"]);
    let old = store.list_at(&kind, None, then).unwrap();
    assert_eq!(names(&old), ["x/a", "y/b"]);
    assert_eq!(old.objects[0].1.value()["n"], 1);
    assert_eq!(names(&store.list_at(&kind, Some("x"), then).unwrap()), ["x/a"]);
    store.compact();
    assert_eq!(
        store.list_at(&kind, None, then).unwrap_err(),
        OutOfRange::Compacted
    );
}

#[test]
fn a_write_that_expects_another_state_is_refused() {
    let store = Store::new();
    let kind: Arc<str> = "/secrets".into();
    let first = store.put(&kind, "a", Expect::Absent, json!({})).unwrap();
    assert!(store.put(&kind, "a", Expect::Absent, json!({})).is_err());
    assert!(
        store
            .put(&kind, "a", Expect::Revision(first.revision() + 1), json!({}))
            .is_err()
    );
    assert!(store.remove(&kind, "a", first.revision() - 1).is_err());
    assert!(
        store
            .put(&kind, "a", Expect::Revision(first.revision()), json!({}))
            .is_ok()
    );
}

/// A watch that is too old lists again, and the controllers look at everything.
#[test]
fn only_the_latest_changes_are_kept() {
    let store = Store::with_history(3);
    let kind: Arc<str> = "/configmaps".into();
    for name in ["a", "b", "c", "d", "e"] {
        let object = json!({"metadata": {"name": name}});
        store.put(&kind, name, Expect::Absent, object).unwrap();
    }
    let newest = store.revision();
    assert_eq!(store.changes(&kind, newest - 3).unwrap().0.len(), 3);
    assert_eq!(
        store.changes(&kind, newest - 4).unwrap_err(),
        OutOfRange::Compacted
    );
    assert_eq!(store.all_changes(newest - 3).unwrap().0.len(), 3);
    assert!(store.all_changes(newest - 4).is_none());
}
