//! What the chart makes of its values, and which values it refuses.

use serde_json::Value;

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
        ("serviceAccount.create=false", "serviceAccount.name"),
        (
            "allowChartRepositories={http://charts.example.com}",
            "allowChartRepositories",
        ),
        ("trustTenants=yes-please", "trustTenants"),
        ("commonLabels.app\\.kubernetes\\.io/name=x", "commonLabels"),
        ("podLabels.app\\.kubernetes\\.io/instance=x", "podLabels"),
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
