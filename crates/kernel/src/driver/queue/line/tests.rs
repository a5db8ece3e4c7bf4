//! The order in which objects get their passes.

use std::collections::BTreeSet;

use proptest::prelude::*;

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
    assert_is_idle(&line);
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
    assert_is_idle(&line);
}

/// An object that leaves its lane and comes back has two places there. The first one once counted for the second, and
/// the object ran twice at once.
#[test]
fn an_object_that_returns_to_a_lane_has_one_place_there() {
    let mut line = line(4);
    join(&mut line, "shop", "a", None);
    for lane in [None, Some("two"), None] {
        join(&mut line, "shop", "k", lane);
    }
    assert_eq!(
        taken(&mut line),
        ["shop/a", "shop/k"],
        "and the namespace is full"
    );
    join(&mut line, "shop", "k", None);
    line.finish(&key("shop", "a"), || None);
    assert!(taken(&mut line).is_empty(), "it runs");
    line.finish(&key("shop", "k"), || None);
    assert_eq!(taken(&mut line), ["shop/k"]);
    line.finish(&key("shop", "k"), || None);
    assert!(taken(&mut line).is_empty());
    assert_is_idle(&line);
}

fn assert_is_idle(line: &FairQueue<()>) {
    assert!(line.namespaces.is_empty() && line.order.is_empty());
    assert!(line.waiting.is_empty() && line.running.is_empty());
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Join(usize, usize),
    Take,
    Finish(usize),
}

proptest! {
    /// Whatever happens: no object runs twice at once, no limit is exceeded, each object that was enqueued runs, and in the
    /// end every worker is free.
    #[test]
    fn workers_come_back_whatever_happens(
        places in 1_u16..6,
        steps in prop::collection::vec(
            prop_oneof![
                (0_usize..6, 0_usize..3).prop_map(|(object, lane)| Step::Join(object, lane)),
                Just(Step::Take),
                (0_usize..6).prop_map(Step::Finish),
            ],
            0..80,
        ),
    ) {
        let name = |object: usize| key(["one", "two"][object % 2], &object.to_string());
        let lane = |lane: usize| [None, Some("a".to_owned()), Some("b".to_owned())][lane].clone();
        let mut line = line(places);
        let mut lanes = [0; 6];
        let mut running: Vec<Key> = Vec::new();
        let mut due: BTreeSet<Key> = BTreeSet::new();
        for step in steps {
            match step {
                Step::Join(object, number) => {
                    lanes[object] = number;
                    line.join(name(object), lane(number), || ());
                    due.insert(name(object));
                }
                Step::Take => {
                    if let Some((key, ())) = line.take() {
                        prop_assert!(due.remove(&key) && !running.contains(&key));
                        running.push(key);
                    }
                }
                Step::Finish(object) => {
                    running.retain(|key| *key != name(object));
                    line.finish(&name(object), || lane(lanes[object]));
                }
            }
            prop_assert!(running.len() <= line.limits.places);
            for namespace in ["one", "two"] {
                let of_namespace = running.iter().filter(|key| key.namespace == namespace);
                prop_assert!(of_namespace.count() <= line.limits.of_namespace);
            }
        }
        while let Some(key) = running.pop().or_else(|| line.take().map(|(key, ())| key)) {
            due.remove(&key);
            line.finish(&key, || None);
        }
        prop_assert!(due.is_empty(), "{due:?} never ran");
        assert_is_idle(&line);
    }
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
