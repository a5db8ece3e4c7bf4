//! The order in which objects get their passes.

use super::*;

fn key(namespace: &str, name: &str) -> Key {
    Key {
        namespace: namespace.into(),
        name: name.into(),
    }
}

fn line(places: u16) -> FairQueue<()> {
    FairQueue::new(Limits::of(places))
}

fn join(line: &mut FairQueue<()>, namespace: &str, name: &str, server: Option<&str>) {
    line.join(key(namespace, name), server.map(Into::into), || ());
}

fn taken(line: &mut FairQueue<()>) -> Vec<String> {
    std::iter::from_fn(|| line.take())
        .map(|(key, ())| format!("{}/{}", key.namespace, key.name))
        .collect()
}

#[test]
fn one_namespace_has_at_most_half_of_the_places() {
    let mut line = line(8);
    for number in 0..60 {
        join(&mut line, "evil", &format!("e{number}"), None);
    }
    assert_eq!(taken(&mut line).len(), 4);
    join(&mut line, "bank", "one", None);
    assert_eq!(taken(&mut line), ["bank/one"], "and it does not wait behind them");
    line.finish(&key("evil", "e0"), || None);
    assert_eq!(taken(&mut line), ["evil/e4"]);
}

#[test]
fn namespaces_take_turns_and_within_them_who_came_first_goes_first() {
    let mut line = line(2);
    for name in ["a", "b", "c"] {
        join(&mut line, "one", name, None);
    }
    join(&mut line, "two", "d", None);
    assert_eq!(taken(&mut line), ["one/a", "two/d"]);
    line.finish(&key("two", "d"), || None);
    assert!(taken(&mut line).is_empty(), "a namespace has one of two places");
    line.finish(&key("one", "a"), || None);
    assert_eq!(taken(&mut line), ["one/b"]);
}

#[test]
fn a_dead_lane_leaves_room_for_the_others_of_its_namespace() {
    let mut line = line(16);
    for number in 0..20 {
        join(&mut line, "shop", &format!("dead{number}"), Some("dead-server"));
    }
    assert_eq!(taken(&mut line).len(), 4);
    for name in ["well", "alone"] {
        join(&mut line, "shop", name, (name == "well").then_some("server"));
    }
    assert_eq!(taken(&mut line), ["shop/well", "shop/alone"]);
}

/// After a start, the caches of children are filled before the objects themselves are listed.
#[test]
fn an_object_whose_lane_becomes_known_waits_in_it_and_is_not_overtaken() {
    let mut line = line(2);
    for name in ["a", "b", "c"] {
        join(&mut line, "shop", name, None);
    }
    for name in ["a", "b", "c"] {
        join(&mut line, "shop", name, Some(name));
    }
    assert_eq!(taken(&mut line), ["shop/a"]);
    join(&mut line, "shop", "a", Some("a"));
    for (finished, next) in [("a", "b"), ("b", "c"), ("c", "a")] {
        line.finish(&key("shop", finished), || Some(finished.into()));
        assert_eq!(taken(&mut line), [format!("shop/{next}")]);
    }
    line.finish(&key("shop", "a"), || Some("a".into()));
    assert!(taken(&mut line).is_empty(), "nobody runs twice");
    assert!(line.namespaces.is_empty() && line.order.is_empty() && line.waiting.is_empty());
}

#[test]
fn an_object_waits_once_and_never_runs_twice_at_once() {
    let mut line = line(8);
    for _ in 0..3 {
        join(&mut line, "shop", "one", None);
    }
    assert_eq!(taken(&mut line), ["shop/one"]);
    for _ in 0..3 {
        join(&mut line, "shop", "one", None);
    }
    assert!(taken(&mut line).is_empty(), "it runs");
    line.finish(&key("shop", "one"), || None);
    assert_eq!(taken(&mut line), ["shop/one"]);
    line.finish(&key("shop", "one"), || None);
    assert!(taken(&mut line).is_empty());
    assert!(line.namespaces.is_empty() && line.order.is_empty() && line.running.is_empty());
}

#[test]
fn a_removed_object_has_no_turn_and_leaves_nothing_behind() {
    let mut line = line(8);
    for name in ["one", "two"] {
        join(&mut line, "shop", name, Some("lane"));
    }
    assert!(line.leave(&key("shop", "one")).is_some());
    assert_eq!(taken(&mut line), ["shop/two"]);
    join(&mut line, "shop", "two", Some("lane"));
    line.leave(&key("shop", "two"));
    line.finish(&key("shop", "two"), || None);
    assert!(taken(&mut line).is_empty());
    assert!(line.namespaces.is_empty() && line.waiting.is_empty());
}

#[test]
fn one_worker_serves_every_namespace() {
    assert_eq!(
        Limits::of(1),
        Limits {
            places: 1,
            of_namespace: 1,
            of_lane: 1
        }
    );
}
