//! What the driver keeps between two passes, and for how long.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use stanchion_kernel::Class;
use stanchion_kernel::driver::Memory;
use stanchion_kernel::watch::key;

use super::sized;
use crate::test_env::Widget;

fn widget(uid: &str, generation: i64, version: u64) -> Widget {
    let mut widget = Widget::new("one", sized(1));
    widget.metadata.uid = Some(uid.into());
    widget.metadata.generation = Some(generation);
    widget.metadata.resource_version = Some(version.to_string());
    widget.metadata.managed_fields = Some(vec![ManagedFieldsEntry::default()]);
    widget
}

/// The version that a pass would get, with this one in the cache.
fn newest(memory: &Memory<Widget>, cached: &Widget) -> String {
    let newest = memory.newest(&key(&cached.metadata), || Some(Arc::new(cached.clone())));
    newest.unwrap().metadata.resource_version.clone().unwrap()
}

#[test]
fn our_own_write_is_known_until_the_watch_tells_of_it() {
    let (memory, stale) = (Memory::default(), widget("a", 1, 5));
    memory.saw(&stale.metadata);
    memory.wrote(&widget("a", 1, 6));
    assert_eq!(newest(&memory, &stale), "6");
    // It is a second copy of the object, so it is as small as the first, and not kept.
    let known = memory.newest(&key(&stale.metadata), || Some(Arc::new(stale.clone())));
    assert_eq!(known.unwrap().metadata.managed_fields, None);
    assert_eq!(
        memory.newest(&key(&stale.metadata), || None),
        None,
        "what is gone is gone"
    );
    memory.saw(&widget("a", 1, 6).metadata);
    assert_eq!(newest(&memory, &stale), "5", "it is forgotten");
}

#[test]
fn a_watch_that_was_faster_than_the_answer_leaves_nothing_to_keep() {
    let memory = Memory::default();
    memory.saw(&widget("a", 1, 6).metadata);
    memory.wrote(&widget("a", 1, 6));
    assert_eq!(newest(&memory, &widget("a", 1, 5)), "5");
}

/// The cache is newer when it is read, because it contains what is dropped here.
#[test]
fn the_cache_is_asked_after_our_own_write() {
    let memory = Memory::default();
    memory.wrote(&widget("a", 1, 6));
    let newest = memory.newest(&key(&widget("a", 1, 5).metadata), || {
        memory.saw(&widget("a", 1, 6).metadata);
        Some(Arc::new(widget("a", 1, 5)))
    });
    assert_eq!(newest.unwrap().metadata.resource_version.as_deref(), Some("6"));
}

#[test]
fn an_object_that_was_released_stays_so_and_its_successor_is_not() {
    let memory = Memory::default();
    assert!(!memory.is_released(&widget("a", 1, 1)));
    memory.released(&widget("a", 1, 1));
    assert!(memory.is_released(&widget("a", 2, 3)));
    assert!(!memory.is_released(&widget("b", 1, 4)));
}

/// An object of the same name does not take over the cleanup that its predecessor still needs.
#[test]
fn a_late_cleanup_is_due_until_it_is_taken_or_the_object_is_released() {
    let (memory, name) = (Memory::<Widget>::default(), key(&widget("a", 1, 1).metadata));
    let taken = |except: Option<&str>| -> Vec<String> {
        let late = memory.take_late(&name, except).into_iter();
        late.filter_map(|widget| widget.metadata.uid.clone()).collect()
    };
    memory.applied_late(widget("a", 1, 1));
    memory.saw(&widget("b", 1, 2).metadata);
    memory.applied_late(widget("b", 1, 3));
    assert_eq!(taken(Some("b")), ["a"], "the newest has a cleanup of its own");
    assert!(memory.needs_late_cleanup(&name));
    assert_eq!(taken(None), ["b"]);
    assert!(!memory.needs_late_cleanup(&name));
    for version in [4, 5] {
        memory.applied_late(widget("b", 1, version));
    }
    assert_eq!(taken(None), ["b"], "once for each object");
    memory.applied_late(widget("b", 1, 6));
    memory.released(&widget("b", 1, 6));
    assert!(!memory.needs_late_cleanup(&name));
    for uid in ["a", "b"] {
        memory.applied_late(widget(uid, 1, 7));
    }
    memory.forget_late(&widget("b", 2, 8).metadata);
    assert_eq!(taken(None), ["a"]);
}

#[test]
fn another_object_of_the_same_name_is_another_object() {
    let memory = Memory::default();
    memory.wrote(&widget("a", 1, 6));
    assert_eq!(memory.failed(&widget("a", 1, 6)), 1);
    assert_eq!(newest(&memory, &widget("b", 1, 5)), "5");
    assert_eq!(memory.failed(&widget("b", 1, 5)), 1);
}

#[test]
fn failures_are_counted_per_generation_and_whatever_the_version() {
    let memory = Memory::default();
    let counts =
        [widget("a", 1, 1), widget("a", 1, 2), widget("a", 2, 3)].map(|widget| memory.failed(&widget));
    assert_eq!(counts, [1, 2, 1]);
    memory.succeeded(&widget("a", 2, 4));
    assert_eq!(memory.failed(&widget("a", 2, 5)), 1);
}

#[test]
fn how_the_last_pass_ended_is_known_until_the_last_object_of_the_name_is_gone() {
    let (memory, how) = (Memory::default(), Some((Class::Human, "X")));
    assert_eq!(memory.ended(&widget("a", 1, 1), how), None);
    assert_eq!(memory.ended(&widget("b", 1, 2), None), how);
    assert_eq!(memory.ended(&widget("b", 1, 2), how), None);
    assert_eq!(memory.forget(&key(&widget("b", 1, 2).metadata)), how);
    assert_eq!(memory.forget(&key(&widget("b", 1, 2).metadata)), None);
}
