//! One policy, reported after consecutive reconciles.

mod events;
mod status;

use serde_json::{Value, json};
use stanchion_api::policy::ChangeSummary;

use super::*;
use crate::policy::validate::{content, validate};

/// A policy with this spec in addition to its connection and one role, and with the status of an earlier report.
fn policy(spec: &Value, status: Option<PostgresPolicyStatus>) -> PostgresPolicy {
    let mut policy: PostgresPolicy = serde_json::from_value(json!({
        "apiVersion": "pgroles.io/v1alpha1", "kind": "PostgresPolicy",
        "metadata": { "name": "shop", "namespace": "ns", "uid": "u", "generation": 7 },
        "spec": { "connection": { "secretRef": { "name": "db" } }, "roles": [{ "name": "app" }] },
    }))
    .unwrap();
    let mut whole = serde_json::to_value(&policy.spec).unwrap();
    for (key, value) in spec.as_object().unwrap() {
        whole[key] = value.clone();
    }
    policy.spec = serde_json::from_value(whole).unwrap();
    policy.status = status;
    policy
}

/// A comparison with this result.
fn found(outcome: PlanOutcome, changes: i32) -> PassResult {
    PassResult {
        was_applied: false,
        summary: ChangeSummary {
            total: changes,
            ..ChangeSummary::default()
        },
        sql: (changes > 0 && outcome != PlanOutcome::Applied)
            .then(|| ("CREATE ROLE \"app\";".to_owned(), false)),
        warnings: Vec::new(),
        holdings: Vec::new(),
        plan: (changes > 0).then(|| "shop-plan-1".to_owned()),
        outcome,
        fingerprints: None,
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000_000 + second).unwrap()
}

/// Reports a reconcile that reached the database.
fn pass(policy: &PostgresPolicy, result: PassResult, second: i64) -> Report<PostgresPolicyStatus> {
    let applied = Applied {
        result: Some(result),
        plan_events: Vec::new(),
        rivals: Vec::new(),
    };
    passed(policy, &applied, None, &[], second)
}

/// Reports a reconcile that failed after it reached the database.
fn problem(policy: &PostgresPolicy, problem: &Problem) -> Report<PostgresPolicyStatus> {
    passed(policy, &Applied::default(), Some(problem), &[], 50)
}

fn passed(
    policy: &PostgresPolicy,
    applied: &Applied,
    problem: Option<&Problem>,
    rivals: &[Rival],
    second: i64,
) -> Report<PostgresPolicyStatus> {
    let target = validate(policy).unwrap();
    let content = content(&policy.spec, std::collections::BTreeMap::new()).unwrap();
    let known = Known {
        identity: "4711/5".to_owned(),
        content: &content,
        rivals,
        security: stanchion_postgres::Security {
            encrypted: true,
            verified: true,
        },
        warnings: &[],
    };
    let passed = Passed {
        target: Some(&target),
        known: Some(known),
        applied,
        problem,
    };
    build(policy, &passed, at(second))
}

/// Reports a reconcile that found nothing changed, or a suspended policy.
fn unseen(policy: &PostgresPolicy) -> Report<PostgresPolicyStatus> {
    if policy.spec.suspend {
        return report_suspended(policy, at(60));
    }
    let target = validate(policy).unwrap();
    let passed = Passed {
        target: Some(&target),
        known: None,
        applied: &Applied::default(),
        problem: None,
    };
    build(policy, &passed, at(60))
}

/// Status and reason.
fn condition<'a>(report: &'a Report<PostgresPolicyStatus>, kind: &str) -> Option<(&'a str, &'a str)> {
    find(&report.status.conditions, kind).map(|it| (it.status.as_str(), it.reason.as_str()))
}

fn events(report: &Report<PostgresPolicyStatus>) -> Vec<&str> {
    report.events.iter().map(|event| event.reason.as_str()).collect()
}

fn message(report: &Report<PostgresPolicyStatus>, kind: &str) -> String {
    find(&report.status.conditions, kind).unwrap().message.clone()
}

/// The same policy one report later.
fn later(spec: &Value, report: Report<PostgresPolicyStatus>) -> PostgresPolicy {
    policy(spec, Some(report.status))
}
