//! The status of constructed releases.

use serde_json::json;

use super::*;

fn release(generation: i64, status: &Value) -> Release {
    let object: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
        "metadata": { "name": "shop-gitlab", "generation": generation },
        "spec": { "chart": { "spec": { "version": "8.11.8" } } },
        "status": status,
    }))
    .unwrap();
    Release::of(&object)
}

fn ready(status: &str, reason: &str, of: i64) -> Value {
    json!([{ "type": "Ready", "status": status, "reason": reason, "message": "words", "observedGeneration": of }])
}

#[test]
fn ready_is_believed_only_of_the_object_as_it_is_now() {
    let done = json!({ "observedGeneration": 2, "conditions": ready("True", "UpgradeSucceeded", 2) });
    assert!(release(2, &done).is_done());
    assert!(!release(3, &done).is_done());
    let half = json!({ "observedGeneration": 1, "conditions": ready("True", "UpgradeSucceeded", 2) });
    assert!(!release(2, &half).is_done());
    assert!(!release(1, &json!({})).is_done());
}

#[test]
fn a_failure_of_flux_is_reported_with_its_message() {
    let failed = release(1, &json!({ "conditions": ready("False", "UpgradeFailed", 1) }));
    assert_eq!(
        failed.progress,
        Progress::Failed {
            what: Failure::Install,
            reason: "UpgradeFailed".into(),
            message: "words".into()
        }
    );
    let works = release(1, &json!({ "conditions": ready("Unknown", "Progressing", 1) }));
    assert_eq!(works.progress, Progress::Working("words".into()));
    let stale = release(2, &json!({ "conditions": ready("False", "UpgradeFailed", 1) }));
    assert_eq!(stale.progress, Progress::Working("Flux has not begun".into()));
}

#[test]
fn a_refusal_of_the_account_is_recognised_and_another_is_not() {
    let says = |message: &str| {
        let mut conditions = ready("False", "InstallFailed", 1);
        conditions[0]["message"] = json!(message);
        let mut failed = release(1, &json!({ "conditions": conditions }));
        failed.account = Some("shop-gitlab-release".into());
        failed.forbidden("gl").is_some()
    };
    assert!(says(
        r#"Helm install failed: clusterroles.rbac.authorization.k8s.io is forbidden: User "system:serviceaccount:gl:shop-gitlab-release" cannot create resource "clusterroles""#
    ));
    assert!(says(
        r#"roles "x" is forbidden: user "system:serviceaccount:gl:shop-gitlab-release" (groups=[]) is attempting to grant RBAC permissions not currently held"#
    ));
    assert!(!says("pods \"x\" is forbidden: violates PodSecurity"));
    assert!(!says(
        r#"x is forbidden: User "system:serviceaccount:other:shop-gitlab-release" cannot"#
    ));
}

#[test]
fn a_wait_that_lasts_is_a_failure() {
    let mut conditions = ready("False", "SourceNotReady", 1);
    conditions[0]["lastTransitionTime"] = json!("2026-01-01T00:00:00Z");
    let waits = release(1, &json!({ "conditions": conditions }));
    let at = |time: &str| waits.clone().judged(time.parse().unwrap());
    assert_eq!(at("2026-01-01T00:00:59Z"), waits);
    assert_eq!(
        at("2026-01-01T00:01:00Z").progress,
        Progress::Failed {
            what: Failure::Begin,
            reason: "SourceNotReady".into(),
            message: "words".into()
        }
    );
    let undated = release(1, &json!({ "conditions": ready("False", "SourceNotReady", 1) }));
    assert_eq!(undated.clone().judged(Timestamp::MAX), undated);
}

#[test]
fn a_release_in_a_named_namespace_is_called_after_it() {
    let name = |spec: Value| {
        let object = json!({ "metadata": { "name": "shop-gitlab" }, "spec": spec });
        Release::of(&serde_json::from_value(object).unwrap()).name
    };
    assert_eq!(name(json!({})), None);
    assert_eq!(
        name(json!({ "targetNamespace": "gl" })).as_deref(),
        Some("gl-shop-gitlab")
    );
    let both = json!({ "targetNamespace": "gl", "releaseName": "shop" });
    assert_eq!(name(both).as_deref(), Some("shop"));
}

#[test]
fn how_long_flux_is_at_work_is_known() {
    let at_work = |status: &str| {
        let mut conditions = ready(status, "Progressing", 1);
        conditions[0]["lastTransitionTime"] = json!("2026-01-01T00:00:00Z");
        let mut release = release(1, &json!({ "conditions": conditions }));
        release.timeout = "45m0s".parse().ok();
        release.until()
    };
    assert_eq!(at_work("Unknown"), "2026-01-01T00:45:00Z".parse().ok());
    assert_eq!(at_work("True"), None);
}

#[test]
fn what_runs_is_what_was_deployed_last() {
    let running = |history: Value| release(1, &json!({ "history": history })).running;
    let entry = |chart: &str, app: &str, status: &str| json!({ "chartVersion": chart, "appVersion": app, "status": status });
    assert_eq!(running(json!([])), None);
    assert_eq!(running(json!([entry("8.3.7", "v17.3.7", "failed")])), None);
    let after_failure = running(json!([
        entry("8.5.5", "v17.5.5", "failed"),
        entry("8.3.7", "v17.3.7", "deployed"),
    ]));
    assert_eq!(
        after_failure,
        Some(Running {
            chart: "8.3.7".into(),
            version: Some(Version::new(17, 3, 7))
        })
    );
    let oldest = release(1, &json!({ "lastAppliedRevision": "8.3.7" })).running;
    assert_eq!(
        oldest,
        Some(Running {
            chart: "8.3.7".into(),
            version: None
        })
    );
}
