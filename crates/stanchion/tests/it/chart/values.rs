//! What the chart makes of its values, and which values it refuses.

use serde_json::Value;
use stanchion_testkit::scratch::Scratch;

use super::{chart, documents, helm, of_kind, run, template};

#[test]
fn wrong_values_are_refused_with_their_name() {
    let Some(helm) = helm("wrong_values") else { return };
    let chart = chart();
    for (setting, said) in [
        ("replicaCount=2", "replicaCount"),
        ("controllers.users=true", "users"),
        (
            "controllers.user=false,controllers.supabase=false,controllers.policy=false,controllers.gitlab=false",
            "enable at least one",
        ),
        ("namespaces={Team A}", "namespaces"),
        ("webhooks.certificates.provider=other", "provider"),
        ("image.digest=sha256:short", "digest"),
        ("metrics.podMonitor.enabled=true", "metrics.plain"),
        (
            "webhooks.enabled=false,metrics.serviceMonitor.enabled=true",
            "metrics.plain",
        ),
        (
            "metrics.plain=true,metrics.serviceMonitor.enabled=true,metrics.podMonitor.enabled=true",
            "serviceMonitor or podMonitor",
        ),
        ("serviceAccount.create=false", "serviceAccount.name"),
        (
            "allowChartRepositories={http://charts.example.com}",
            "allowChartRepositories",
        ),
        ("trustTenants=yes-please", "trustTenants"),
        ("commonLabels.app\\.kubernetes\\.io/name=x", "commonLabels"),
        ("podLabels.app\\.kubernetes\\.io/instance=x", "podLabels"),
        // doctor looks for it, and a second one would make the document invalid.
        ("commonLabels.app\\.kubernetes\\.io/part-of=x", "commonLabels"),
        ("commonLabels.app\\.kubernetes\\.io/managed-by=x", "commonLabels"),
        ("podLabels.app\\.kubernetes\\.io/version=x", "podLabels"),
        ("podLabels.helm\\.sh/chart=x", "podLabels"),
        (
            "metrics.serviceMonitor.labels.app\\.kubernetes\\.io/part-of=x",
            "labels",
        ),
        ("fullnameOverride=Platform_DB", "fullnameOverride"),
        ("nameOverride=Platform_DB", "nameOverride"),
        // Values that would have no effect.
        (
            "networkPolicy.metricsFrom[0].podSelector.matchLabels.app=x",
            "metrics.plain",
        ),
        ("defaultInstance.roles={app}", "defaultInstance.secretName"),
        ("defaultInstance.databases={app}", "defaultInstance.secretName"),
        ("defaultInstance.key=address", "defaultInstance.secretName"),
        ("metrics.prometheusRule.disabled={StanchionDowm}", "disabled"),
    ] {
        let words = ["template", "x", chart.to_str().unwrap(), "--set", setting];
        let refused = run(&helm, &words).unwrap_err();
        assert!(refused.contains(said), "{setting}: {refused}");
    }
    // The schema describes every value.
    let schema: Value =
        serde_json::from_str(&std::fs::read_to_string(chart.join("values.schema.json")).unwrap()).unwrap();
    let values = &documents(&std::fs::read_to_string(chart.join("values.yaml")).unwrap())[0];
    known(values, &schema, "");
}

/// Fails for a value that the schema does not describe.
fn known(values: &Value, schema: &Value, path: &str) {
    let Some(properties) = schema["properties"].as_object() else {
        return;
    };
    for (name, value) in values.as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        let schema = properties.get(name).unwrap_or_else(|| panic!("{path}"));
        assert!(
            schema["description"].is_string() || schema["properties"].is_object(),
            "{path}"
        );
        known(value, schema, &path);
    }
}

/// A misspelt alert would stay enabled.
#[test]
fn every_alert_can_be_disabled_by_its_name() {
    let read = |file: &str| std::fs::read_to_string(chart().join(file)).unwrap();
    let alerts = documents(&read("files/alerts.yaml")).remove(0);
    let mut alerts: Vec<&Value> = alerts
        .as_array()
        .unwrap()
        .iter()
        .map(|alert| &alert["alert"])
        .collect();
    alerts.sort_by_key(|name| name.as_str());
    let schema: Value = serde_json::from_str(&read("values.schema.json")).unwrap();
    let disabled =
        schema.pointer("/properties/metrics/properties/prometheusRule/properties/disabled/items/enum");
    let disabled: Vec<&Value> = disabled.unwrap().as_array().unwrap().iter().collect();
    assert_eq!(disabled, alerts);
}

/// Artifact Hub shows the README and the metadata without the rest of the repository.
#[test]
fn a_release_completes_the_metadata_of_the_chart() {
    let Some(helm) = helm("metadata") else { return };
    let scratch = Scratch::new("stanchion-metadata-").unwrap();
    let copy = scratch.path().join("stanchion");
    crate::image::copy(&chart(), &copy);
    let repository = "https://git.example.com/team/stanchion";
    let image = "registry.example.com/stanchion:0.1.0@sha256:00";
    let done = std::process::Command::new(chart().join("../../tools/chart-metadata"))
        .args([copy.to_str().unwrap(), "0.1.0", image, repository])
        .status()
        .unwrap();
    assert!(done.success());
    run(&helm, &["lint", "--strict", copy.to_str().unwrap()]).unwrap();
    let read = |file: &str| std::fs::read_to_string(copy.join(file)).unwrap();
    let metadata = documents(&read("Chart.yaml")).remove(0);
    assert_eq!(metadata["home"], repository);
    assert_eq!(metadata["sources"][0], repository);
    assert_eq!(metadata["maintainers"][0]["url"], repository);
    let annotation = |name: &str| {
        metadata["annotations"][format!("artifacthub.io/{name}")]
            .as_str()
            .unwrap()
    };
    let images = documents(annotation("images")).remove(0);
    assert_eq!(images[0]["image"], image);
    // Every page that a link names is in the repository.
    let pages = format!("{repository}/blob/v0.1.0/");
    let links = documents(annotation("links")).remove(0);
    let links = links
        .as_array()
        .unwrap()
        .iter()
        .map(|link| link["url"].as_str().unwrap());
    let readme = read("README.md");
    let of_readme = readme
        .split("](")
        .skip(1)
        .map(|rest| rest.split(')').next().unwrap());
    for link in links.chain(of_readme) {
        let page = link.strip_prefix(&pages).unwrap_or_else(|| panic!("{link}"));
        assert!(chart().join("../..").join(page).exists(), "{link}");
    }
    assert!(annotation("crds").contains("PostgresUser"));
}

/// The text that helm prints after an installation.
#[test]
fn the_notes_say_what_an_uninstallation_deletes() {
    let Some(helm) = helm("notes") else { return };
    let chart = chart();
    let notes = |setting: &str| {
        let words = [
            "install",
            "x",
            chart.to_str().unwrap(),
            "--dry-run=client",
            "-n",
            "ops",
        ];
        let said = run(&helm, &[&words[..], &["--set", setting]].concat()).unwrap();
        said.split("\nNOTES:\n").nth(1).unwrap().to_owned()
    };
    let (kept, deleted, others) = (
        notes("crds.keep=true"),
        notes("crds.keep=false"),
        notes("crds.enabled=false,crds.keep=false"),
    );
    for notes in [&kept, &others] {
        assert!(
            notes.contains("keeps the CRDs") && !notes.contains("deletes the CRDs"),
            "{notes}"
        );
    }
    assert!(
        deleted.contains("deletes the CRDs") && !deleted.contains("keeps"),
        "{deleted}"
    );
    // New values of the chart get their defaults, and the release is found.
    assert!(kept.contains("-n ops --reset-then-reuse-values"), "{kept}");
}

/// In a cluster where somebody else writes the permissions, `helm test` must not bring any of its own.
#[test]
fn without_rbac_there_is_none_at_all() {
    let Some(helm) = helm("no_rbac") else { return };
    let objects = template(&helm, &["--set", "rbac.create=false"]);
    for kind in ["Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "Job"] {
        assert_eq!(of_kind(&objects, kind), [] as [&Value; 0], "{kind}");
    }
    assert_eq!(of_kind(&objects, "Deployment").len(), 1);
}

/// The more specific map wins. A key that is there twice makes the document invalid.
#[test]
fn a_label_in_two_values_is_rendered_once() {
    let twice: Result<Value, _> = serde_saphyr::from_str("a: 1\na: 2\n");
    assert!(twice.is_err(), "the reader of `template` accepts duplicate keys");
    let Some(helm) = helm("labels") else { return };
    let settings = "commonLabels.team=all,podLabels.team=pods,metrics.plain=true,metrics.podMonitor.enabled=true,\
                    metrics.podMonitor.labels.team=monitor,commonAnnotations.note=all,podAnnotations.note=pods,\
                    podAnnotations.kubectl\\.kubernetes\\.io/default-container=mesh";
    let objects = template(&helm, &["--set", settings]);
    let of = |kind: &str, pointer: &str| of_kind(&objects, kind)[0].pointer(pointer).cloned();
    assert_eq!(of("Deployment", "/metadata/labels/team"), Some("all".into()));
    let pods = "/spec/template/metadata";
    assert_eq!(
        of("Deployment", &format!("{pods}/labels/team")),
        Some("pods".into())
    );
    assert_eq!(
        of("Deployment", &format!("{pods}/annotations/note")),
        Some("pods".into())
    );
    let container = format!("{pods}/annotations/kubectl.kubernetes.io~1default-container");
    assert_eq!(of("Deployment", &container), Some("mesh".into()));
    assert_eq!(of("PodMonitor", "/metadata/labels/team"), Some("monitor".into()));
}

/// The API server refuses a Job with a longer name, because its pods have the name as a label.
#[test]
fn the_longest_name_of_a_release_leaves_room_for_that_of_the_test() {
    let Some(helm) = helm("long_name") else { return };
    let long = format!("fullnameOverride={}", "a".repeat(63));
    let objects = template(&helm, &["--set", &long]);
    let jobs = of_kind(&objects, "Job");
    let name = jobs[0]["metadata"]["name"].as_str().unwrap();
    assert_eq!(name.len(), 63, "{name}");
    let account = jobs[0].pointer("/spec/template/spec/serviceAccountName").unwrap();
    assert_eq!(account, name);
}
