//! Plants every fault into a healthy snapshot and finds it under its own id; the healthy snapshot has no findings.

mod faults;
mod fixture;

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::json;

use self::faults::{FAULTS, failed_plan, first, mounted, of, push, trust};
use self::fixture::{bundle, condition, deployment, healthy, minutes_ago, object};
use super::snapshot::Snapshot;
use super::{ALL, Finding, diagnose, render};
use crate::cluster::Unreadable;
use crate::status;

fn findings(snapshot: &Snapshot) -> Vec<Finding> {
    let diagnosis = diagnose(snapshot);
    assert!(diagnosis.skipped.is_empty(), "{:?}", diagnosis.skipped);
    diagnosis.findings
}

#[test]
fn a_healthy_cluster_is_ok_and_nothing_else() {
    let diagnosis = diagnose(&healthy());
    assert_eq!(diagnosis.findings, []);
    assert!(diagnosis.ok);
    assert_eq!(render(&diagnosis, false), format!("ok ({} checks)\n", ALL.len()));
}

/// The pods serve their metrics on no port, and nobody gave a file: a healthy installation is ok all the same.
#[test]
fn an_installation_with_its_default_settings_is_ok_and_nothing_else() {
    let mut snapshot = healthy();
    snapshot.metrics = Err(Unreadable::NotServed);
    let text = render(&diagnose(&snapshot), false);
    let checks = ALL.len() - 4;
    assert_eq!(text, format!("ok ({checks} checks, 4 more with --metrics)\n"));
}

#[test]
fn every_planted_fault_is_found_alone_and_has_a_remedy() {
    assert!(FAULTS.len() >= 25);
    for (id, plant) in FAULTS {
        let mut snapshot = healthy();
        plant(&mut snapshot);
        let findings = findings(&snapshot);
        let found: BTreeSet<&str> = findings.iter().map(|finding| finding.check).collect();
        assert_eq!(found, BTreeSet::from([*id]), "{findings:#?}");
        for finding in findings {
            assert!(
                !finding.subject.is_empty() && !finding.message.is_empty(),
                "{finding:?}"
            );
            assert!(finding.remedy.len() > 10, "{finding:?}");
        }
    }
}

#[test]
fn every_check_has_a_fault_that_it_finds_and_a_section_in_the_docs() {
    let planted: BTreeSet<&str> = FAULTS.iter().map(|(id, _)| *id).collect();
    let checks: BTreeSet<&str> = ALL.iter().map(|check| check.id).collect();
    assert_eq!(planted, checks);
    assert_eq!(checks.len(), ALL.len(), "an id is used twice");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/doctor.md");
    let page = std::fs::read_to_string(page).unwrap();
    let sections: BTreeSet<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("### "))
        .collect();
    assert_eq!(sections, checks);
    for check in ALL {
        let section = page.split(&format!("### {}\n", check.id)).nth(1).unwrap();
        let severity = format!("{:?}.", check.severity);
        assert!(
            section.trim_start().starts_with(&severity),
            "{}: {severity}",
            check.id
        );
    }
}

#[test]
fn what_may_not_be_read_is_said_and_is_no_fault() {
    let mut snapshot = healthy();
    snapshot.rbac = Err(Unreadable::Forbidden);
    snapshot.metrics = Err(Unreadable::NotServed);
    let diagnosis = diagnose(&snapshot);
    assert_eq!(diagnosis.findings, []);
    let skipped: Vec<&str> = diagnosis.skipped.iter().map(|skipped| skipped.check).collect();
    assert!(
        skipped.contains(&"rbac-missing") && skipped.contains(&"queue-grows"),
        "{skipped:?}"
    );
    let text = render(&diagnosis, false);
    assert!(
        text.contains("skipped rbac-missing, rbac-wildcard: cannot read roles and bindings"),
        "{text}"
    );
    assert!(text.ends_with(", 4 more with --metrics)\n"), "{text}");
    // Metrics that exist and cannot be read are another matter.
    snapshot.metrics = Err(Unreadable::Forbidden);
    let text = render(&diagnose(&snapshot), false);
    assert!(
        text.contains("skipped queue-grows, reconcile-panics, requests-forbidden, requests-throttled: cannot read metrics"),
        "{text}"
    );
}

/// A mounted bundle contains the CAs that are trusted at present: one of them is enough.
#[test]
fn a_mounted_bundle_is_valid_until_its_last_certificate_ends() {
    let mut snapshot = healthy();
    snapshot.deployments = Ok(vec![mounted()]);
    for webhook in snapshot.webhooks.as_mut().unwrap() {
        webhook["webhooks"][0]["clientConfig"]["caBundle"] = json!(bundle(&[-5, 3, 60]));
    }
    assert_eq!(findings(&snapshot), []);
}

/// Who may not list the certificates of cert-manager still hears of a CA that ends; without cert-manager, nobody needs to.
#[test]
fn certificates_that_may_not_be_read_do_not_hide_the_ca() {
    let mut snapshot = healthy();
    snapshot.certificates = Err(Unreadable::Forbidden);
    assert_eq!(findings(&snapshot), [], "the operator makes its own");

    snapshot.deployments = Ok(vec![mounted()]);
    let skipped: Vec<&str> = diagnose(&snapshot)
        .skipped
        .iter()
        .map(|skipped| skipped.check)
        .collect();
    assert_eq!(skipped, ["certificate-expired", "certificate-expires"]);

    trust(&mut snapshot, &[-3]);
    let diagnosis = diagnose(&snapshot);
    let found: Vec<&str> = diagnosis.findings.iter().map(|finding| finding.check).collect();
    assert_eq!(found, ["certificate-expired"]);
}

/// `helm test` looks at one installation; what others watch is not known to it.
#[test]
fn with_a_namespace_of_the_operator_no_object_is_unwatched() {
    let mut snapshot = healthy();
    snapshot.operator_namespace = Some("stanchion-system".to_owned());
    snapshot.deployments = Ok(vec![deployment("stanchion-system", &["--namespace=team"])]);
    snapshot
        .namespaces
        .as_mut()
        .unwrap()
        .push(json!({ "metadata": { "name": "team" } }));
    let diagnosis = diagnose(&snapshot);
    assert_eq!(diagnosis.findings, []);
    let skipped: Vec<&str> = diagnosis.skipped.iter().map(|skipped| skipped.check).collect();
    assert_eq!(skipped, ["object-unwatched"]);
}

/// A policy keeps plans that failed long ago.
#[test]
fn a_failed_plan_counts_while_its_policy_is_not_ready() {
    let found = |policy: &str, place: &str, ready: &str| {
        let mut snapshot = healthy();
        push(&mut snapshot, failed_plan());
        let mut policy = object("PostgresPolicy", policy);
        policy["metadata"]["namespace"] = json!(place);
        policy["status"]["conditions"] = json!([condition("Ready", ready, "Any", 3)]);
        push(&mut snapshot, policy);
        findings(&snapshot)
    };
    assert_eq!(found("app", "shop", "True"), []);
    for (policy, place, ready) in [
        ("app", "shop", "False"),
        ("other", "shop", "True"),
        ("app", "elsewhere", "True"),
    ] {
        let findings = found(policy, place, ready);
        assert_eq!(findings.len(), 1, "{findings:#?}");
        assert_eq!(findings[0].check, "object-failed");
        assert_eq!(
            findings[0].message,
            "failed: permission denied for schema billing"
        );
    }
}

/// The label is no proof: the author of a Deployment may be a tenant.
#[test]
fn a_deployment_cannot_paint_the_terminal_or_name_a_command() {
    let hostile = [
        "--namespace=\u{1b}]0;x\u{7}",
        "--namespace=gone; reboot",
        "--namespace=-o$(reboot)",
        "--namespace=missing",
        "--controllers=user,`reboot`",
    ];
    let mut snapshot = healthy();
    let mut deployment = deployment("shop", &hostile);
    deployment["metadata"]["name"] = json!("x\u{1b}[2Jowned\nerror");
    snapshot.deployments.as_mut().unwrap().push(deployment);
    let mut rule = json!({ "apiGroups": ["\u{1b}[2J"], "resources": ["x\ny"], "verbs": ["*"] });
    rule["resourceNames"] = json!(["\u{1b}]0;x\u{7}"]);
    for object in snapshot.rbac.as_mut().unwrap() {
        if let Some(rules) = object["rules"].as_array_mut() {
            rules.clear();
            rules.push(rule.clone());
        }
    }
    snapshot.leases = Err(Unreadable::Failed("\u{1b}[2Jno".to_owned()));
    let diagnosis = diagnose(&snapshot);
    let found: BTreeSet<&str> = diagnosis.findings.iter().map(|finding| finding.check).collect();
    assert!(
        found.contains("operator-namespace") && found.contains("rbac-missing"),
        "{found:?}"
    );
    assert!(found.contains("rbac-wildcard"), "{found:?}");
    for finding in &diagnosis.findings {
        let Finding {
            subject,
            message,
            remedy,
            ..
        } = finding;
        for text in [subject, message, remedy] {
            assert!(!text.contains(char::is_control), "{text:?}");
            assert!(!text.contains("reboot"), "{text:?}");
        }
    }
    assert!(!render(&diagnosis, false).contains('\u{1b}'));
}

/// The clock of this machine may be ahead of that of the leader's node.
#[test]
fn a_lease_of_two_minutes_ago_has_not_expired() {
    let mut snapshot = healthy();
    first(&mut snapshot.leases)["spec"]["renewTime"] = json!(minutes_ago(2));
    assert_eq!(findings(&snapshot), []);
}

/// The operator gets as much time for a new spec as for a new object.
#[test]
fn a_spec_that_was_just_changed_is_not_ignored() {
    let changed = |minutes: i64| {
        let mut snapshot = healthy();
        let metadata = &mut of(&mut snapshot, "alice")["metadata"];
        metadata["generation"] = json!(2);
        metadata["managedFields"] = json!([
            { "manager": "kubectl", "time": minutes_ago(minutes), "fieldsV1": { "f:spec": {} } },
            { "manager": "kubectl", "time": minutes_ago(900), "fieldsV1": { "f:spec": {} } },
            { "manager": "stanchion", "time": minutes_ago(0), "subresource": "status", "fieldsV1": { "f:status": {} } },
        ]);
        findings(&snapshot).len()
    };
    assert_eq!((changed(1), changed(7)), (0, 1));
}

#[test]
fn the_worst_comes_first() {
    let mut snapshot = healthy();
    for (_, plant) in FAULTS
        .iter()
        .filter(|(id, _)| ["object-suspended", "operator-degraded", "flux-unavailable"].contains(id))
    {
        plant(&mut snapshot);
    }
    let order: Vec<&str> = findings(&snapshot).iter().map(|finding| finding.check).collect();
    assert_eq!(
        order,
        ["flux-unavailable", "operator-degraded", "object-suspended"]
    );
    assert!(!diagnose(&snapshot).ok);
}

/// The kinds that are read are those with a status.
#[test]
fn objects_of_every_kind_are_looked_at() {
    let kinds: Vec<String> = status::with_status()
        .iter()
        .map(|kind| kind.resource.kind.clone())
        .collect();
    for kind in [
        "PostgresUser",
        "PostgresInstance",
        "SupabaseProject",
        "PostgresPolicy",
        "PostgresPolicyPlan",
        "GitlabInstance",
    ] {
        assert!(kinds.iter().any(|known| known == kind), "{kinds:?}");
    }
}
