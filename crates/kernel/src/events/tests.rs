//! Which transitions cause an event, and how repetitions are counted.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;

const TABLE: &[TransitionEvent] = &[
    TransitionEvent {
        condition: "Ready",
        status: "True",
        kind: Severity::Normal,
        action: "Reconcile",
    },
    TransitionEvent {
        condition: "Ready",
        status: "False",
        kind: Severity::Warning,
        action: "Reconcile",
    },
    TransitionEvent {
        condition: "Stalled",
        status: "True",
        kind: Severity::Warning,
        action: "Validate",
    },
];

fn condition(type_: &str, status: &str, reason: &str, message: &str) -> Condition {
    Condition {
        type_: type_.into(),
        status: status.into(),
        reason: reason.into(),
        message: message.into(),
        last_transition_time: Time(jiff::Timestamp::UNIX_EPOCH),
        observed_generation: None,
    }
}

#[test]
fn only_status_and_reason_are_news() {
    let down = condition("Ready", "False", "DatabaseDown", "connection refused (attempt 1)");
    let cases = [
        ("the same", down.clone(), 0),
        (
            "another message",
            condition("Ready", "False", "DatabaseDown", "connection refused (attempt 2)"),
            0,
        ),
        (
            "another reason",
            condition("Ready", "False", "NoPrivilege", "grant CREATEROLE"),
            1,
        ),
        (
            "another status",
            condition("Ready", "True", "DatabaseDown", "up"),
            1,
        ),
        (
            "a status without a row",
            condition("Ready", "Unknown", "Checking", ""),
            0,
        ),
    ];
    for (case, new, expected) in cases {
        assert_eq!(
            transitions(std::slice::from_ref(&down), &[new], TABLE).len(),
            expected,
            "{case}"
        );
    }
}

#[test]
fn the_time_and_the_observed_generation_are_not_news() {
    let old = condition("Ready", "True", "Ready", "ready");
    let new = Condition {
        last_transition_time: Time(jiff::Timestamp::MAX),
        observed_generation: Some(7),
        ..old.clone()
    };
    assert!(transitions(&[old], &[new], TABLE).is_empty());
}

#[test]
fn a_new_condition_is_told_in_the_words_of_the_condition() {
    let new = [
        condition("Stalled", "False", "Progressing", "fine"),
        condition("Ready", "True", "Ready", "role app is ready"),
        condition("Connected", "True", "Connected", "not in the table"),
    ];
    let record = EventRecord {
        kind: Severity::Normal,
        reason: "Ready".into(),
        action: "Reconcile".into(),
        note: "role app is ready".into(),
    };
    assert_eq!(transitions(&[], &new, TABLE), [record]);
}

#[test]
fn event_names_fit_and_differ() {
    let long = format!("{}-.{}", "a".repeat(234), "b".repeat(17));
    let name = unique_name(&long);
    assert!(name.len() <= 253, "{}", name.len());
    assert!(!name.contains("-.") && !name.contains(".."), "{name}");
    assert_ne!(unique_name("x"), unique_name("x"));
}

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
