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
