//! Which results are valid, and for how long.

use super::*;
use crate::database::{Names, VerifiedPasswords};

fn key(name: &str) -> Key {
    Key {
        namespace: "ns".into(),
        name: name.into(),
    }
}

fn checked(server: &str) -> Checked {
    let answered = CheckResult::Reachable {
        latency: Duration::ZERO,
        security: None,
    };
    Checked {
        inputs: [0; 32],
        server: server.to_owned(),
        at: Instant::now(),
        postgres: answered.clone(),
        s3: answered,
        database: Some(Initialised {
            names: Names::default(),
            notes: Vec::new(),
            verified: VerifiedPasswords::default(),
        }),
    }
}

fn converged() -> Converged {
    Converged {
        generation: Some(1),
        rotate: None,
        secrets: Vec::new(),
        config_maps: BTreeSet::new(),
        children: [0; 32],
    }
}

#[test]
fn a_lost_server_invalidates_the_checks_of_all_its_projects() {
    let cache = ProjectCache::default();
    for (name, server) in [("a", "one:5432"), ("b", "one:5432"), ("c", "two:5432")] {
        cache.check(&key(name), checked(server));
    }
    let woken = cache.invalidate_server("one:5432");
    assert_eq!(woken, [key("a"), key("b")]);
    assert_eq!(cache.invalidate_server("one:5432"), [], "each is woken once");
    let is_valid = |name: &str| cache.last_check(&key(name), CHECK_EVERY).holds;
    assert_eq!(["a", "b", "c"].map(is_valid), [false, false, true]);
}

/// Another project loses the server after this one has asked it, and before its answer is remembered.
#[tokio::test(start_paused = true)]
async fn an_answer_from_before_the_loss_is_not_valid_when_it_is_remembered() {
    let cache = ProjectCache::default();
    let holds = |name: &str| cache.last_check(&key(name), CHECK_EVERY).holds;
    cache.check(&key("a"), checked("one:5432"));
    let moment = Duration::from_millis(1);
    tokio::time::advance(moment).await;
    let answer = checked("one:5432");
    tokio::time::advance(moment).await;
    assert_eq!(cache.invalidate_server("one:5432"), [key("a")]);
    tokio::time::advance(moment).await;
    assert_eq!(cache.check(&key("b"), answer), [key("b")], "it asks again");
    assert!(!holds("b"));
    assert_eq!(cache.check(&key("b"), checked("one:5432")), []);
    assert_eq!(["a", "b"].map(holds), [false, true]);
}

#[test]
fn a_refused_project_does_not_concern_the_others_on_its_server() {
    let cache = ProjectCache::default();
    let failed = |refused: bool| Checked {
        postgres: CheckResult::Failed {
            class: stanchion_kernel::Class::Human,
            reason: "DatabaseTaken",
            message: "it belongs to another project".to_owned(),
            last: None,
            refused,
        },
        ..checked("one:5432")
    };
    for name in ["a", "b"] {
        cache.check(&key(name), checked("one:5432"));
    }
    assert_eq!(cache.check(&key("a"), failed(true)), []);
    assert!(cache.last_check(&key("b"), CHECK_EVERY).holds);
    cache.check(&key("a"), checked("one:5432"));
    assert_eq!(cache.check(&key("a"), failed(false)), [key("b")]);
}

#[test]
fn what_is_read_again_is_not_taken_from_the_cache_after_a_failure() {
    let (cache, key) = (ProjectCache::default(), key("a"));
    cache.check(&key, checked("one:5432"));
    cache.set_converged(&key, Some(converged()));
    cache.outdated(&key);
    assert!(cache.converged(&key, CHECK_EVERY).is_none());
    assert!(
        cache.last_check(&key, CHECK_EVERY).holds,
        "the database was not read again"
    );
}

#[test]
fn a_project_is_not_converged_while_its_server_does_not_answer() {
    let (cache, key) = (ProjectCache::default(), key("a"));
    cache.check(&key, checked("one:5432"));
    cache.set_converged(&key, Some(converged()));
    assert!(cache.converged(&key, CHECK_EVERY).is_some());
    let failed = CheckResult::Failed {
        class: stanchion_kernel::Class::Transient,
        reason: "Timeout",
        message: "no answer".to_owned(),
        last: None,
        refused: false,
    };
    let lost = Checked {
        postgres: failed,
        ..checked("one:5432")
    };
    cache.check(&key, lost);
    assert!(cache.converged(&key, CHECK_EVERY).is_none());
}

#[test]
fn only_the_first_reconcile_skips_the_check() {
    let cache = ProjectCache::default();
    assert_eq!(cache.first_look(&key("a")), Some(REPAIR_WINDOW));
    cache.postpone(&key("a"), REPAIR_WINDOW);
    assert_eq!(cache.first_look(&key("b")), Some(REPAIR_WINDOW + AFTER_EACH));
    assert_eq!(cache.first_look(&key("a")), None);
}

#[test]
fn a_repaired_project_is_not_checked_before_its_turn() {
    let (cache, within) = (ProjectCache::default(), CHECK_EVERY);
    let (key, converged) = (key("a"), converged());
    cache.set_converged(&key, Some(converged.clone()));
    assert!(
        cache.converged(&key, within).is_none(),
        "its first check is not scheduled"
    );
    let wait = cache.first_look(&key).unwrap();
    cache.postpone(&key, wait);
    let (found, left) = cache.converged(&key, within).unwrap();
    assert!(found == converged && left <= wait);
    cache.lock().projects.get_mut(&key).unwrap().due = Some(Instant::now());
    assert!(cache.converged(&key, within).is_none(), "its first check is due");
}

#[test]
fn many_projects_are_checked_less_often() {
    for (projects, every) in [
        (0, 30),
        (1, 30),
        (60, 30),
        (240, 120),
        (1_000, 500),
        (5_000, 2_500),
    ] {
        assert_eq!(check_every(projects), Duration::from_secs(every), "{projects}");
    }
    assert!(check_every(usize::MAX) > Duration::from_hours(1));
}
