use serde_json::{Value, json};

use super::*;

/// What an instance waits for whose release is deleted, which is its second generation.
fn described(observed: i64, status: &str, reason: &str, message: &str) -> (&'static str, String) {
    let release: DynamicObject = serde_json::from_value(json!({
        "metadata": { "name": "shop-gitlab", "generation": 2, "deletionTimestamp": "2026-01-01T00:10:00Z" },
        "spec": { "timeout": "45m0s", "releaseName": "shop" },
        "status": { "conditions": [{
            "type": "Ready", "status": status, "reason": reason, "message": message, "observedGeneration": observed,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]},
    }))
    .unwrap();
    let plan = uninstall(&crate::flux::HELM_RELEASE.at("v2"), &release);
    let blocker = plan.blocker.unwrap();
    (blocker.reason, blocker.message)
}

#[test]
fn a_pending_uninstall_is_reported_with_its_deadline() {
    let (reason, words) = described(
        1,
        "Unknown",
        "Progressing",
        "Running 'install' action with timeout of 45m0s",
    );
    assert_eq!(reason, "WaitingForFlux");
    for part in [
        "Running 'install'",
        "2026-01-01T00:45:00Z",
        "\"finalizers\":null",
        "helm uninstall shop",
    ] {
        assert!(words.contains(part), "{words}");
    }
    let (reason, words) = described(1, "True", "InstallSucceeded", "");
    assert_eq!(reason, "Uninstalling");
    assert!(words.contains("\"finalizers\":null"), "{words}");
    let (reason, words) = described(2, "False", "UninstallFailed", "no rights.");
    assert_eq!(reason, "UninstallFailed");
    assert!(words.contains("no rights."), "{words}");
}

/// Each reason is in `Ready` and in one event.
#[test]
fn what_a_deletion_waits_for_is_reported_once() {
    let mut instance: GitlabInstance = serde_json::from_value(json!({
        "apiVersion": "k8s.bnerd.com/v1alpha1", "kind": "GitlabInstance",
        "metadata": { "name": "shop", "namespace": "gl", "generation": 2 },
        "spec": { "domains": { "gitlab": "git.example.com" } },
        "status": { "phase": "Ready", "conditions": [{
            "type": "Ready", "status": "True", "reason": "ReleaseReady", "message": "", "observedGeneration": 1,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]},
    }))
    .unwrap();
    let mut reported = Vec::new();
    for reason in [
        "WaitingForFlux",
        "WaitingForFlux",
        "UninstallFailed",
        "UninstallFailed",
    ] {
        let problem = Problem::dependency(reason, "words");
        let outcome = CleanupOutcome {
            target: &GitlabCleanup::target(&instance),
            observed: None,
            applied: &Written::default(),
            problem: Some(&problem),
            blocked: true,
        };
        let report = GitlabCleanup::report(&instance, &outcome, Timestamp::UNIX_EPOCH);
        assert_eq!(report.status.phase, Some(Phase::Terminating));
        let ready = find(&report.status.conditions, "Ready").unwrap();
        assert_eq!(
            (
                ready.status.as_str(),
                ready.reason.as_str(),
                ready.message.as_str()
            ),
            ("False", reason, "words")
        );
        assert_eq!(ready.observed_generation, Some(2));
        reported.extend(report.events);
        instance.status = Some(report.status);
    }
    let said = |reason| EventRecord::normal(reason, "Wait", "words");
    assert_eq!(reported, [said("WaitingForFlux"), said("UninstallFailed")]);
}

/// A release without a status is deleted like any other.
#[test]
fn a_release_without_a_status_is_uninstalled() {
    let release: DynamicObject = serde_json::from_value(json!({
        "metadata": { "name": "shop-gitlab" }, "spec": Value::Null,
    }))
    .unwrap();
    let plan = uninstall(&crate::flux::HELM_RELEASE.at("v2"), &release);
    assert_eq!(plan.changes.len(), 1);
}
