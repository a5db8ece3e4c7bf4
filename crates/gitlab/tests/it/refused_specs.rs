//! Specs that the API server refuses.

use serde_json::{Value, json};

use crate::test_env::TestEnv;

#[tokio::test]
async fn what_cannot_be_meant_is_refused_at_once() {
    let env = TestEnv::new().await;
    let refused: &[(Value, &str)] = &[
        (json!({ "domains": {} }), "domains.gitlab"),
        (
            json!({ "domains": { "gitlab": "x" }, "edition": "xx" }),
            "edition",
        ),
        (
            json!({ "domains": { "gitlab": "x" }, "edition": "ee" }),
            "licenseSecret",
        ),
    ];
    for (spec, words) in refused {
        let instance = json!({
            "apiVersion": "k8s.bnerd.com/v1alpha1", "kind": "GitlabInstance",
            "metadata": { "name": "no" }, "spec": spec,
        });
        let params = kube::api::PatchParams::apply("test");
        let error = env
            .instances()
            .patch("no", &params, &kube::api::Patch::Apply(&instance))
            .await
            .unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
}

/// Strings for the chart are valid, or refused when they are applied.
#[tokio::test]
async fn texts_that_nobody_can_mean_are_refused_at_once() {
    let env = TestEnv::new().await;
    for host in [
        "https://git.example.com",
        "git.example.com:8443",
        "git.example.com/x",
        "git example.com",
        "*.example.com",
        "bücher.example.com",
        "{{ .Release.Name }}",
        "Git.example.com",
        "git.example.com.",
    ] {
        for field in ["gitlab", "registry", "kas", "pages"] {
            let refused = env.refused(json!({ "domains": { field: host } })).await;
            assert!(refused.contains(&format!("domains.{field}")), "{host}: {refused}");
        }
    }
    for (field, spec) in [
        ("backupSchedule", json!({ "backupSchedule": "every night" })),
        ("backupSchedule", json!({ "backupSchedule": "{{ x }} 2 * * *" })),
        (
            "postgres.storage.size",
            json!({ "postgres": { "storage": { "size": "big" } } }),
        ),
        (
            "redis.storage.size",
            json!({ "redis": { "storage": { "size": "-1Gi" } } }),
        ),
        ("nodeSelector", json!({ "nodeSelector": { "pool": "{{ x }}" } })),
        ("nodeSelector", json!({ "nodeSelector": { "a b": "x" } })),
        (
            "tolerations",
            json!({ "tolerations": [{ "operator": "Sometimes" }] }),
        ),
        (
            "tolerations",
            json!({ "tolerations": [{ "tolerationSeconds": "x" }] }),
        ),
        ("tolerations", json!({ "tolerations": [{ "key": "{{ x }}" }] })),
        ("tolerations", json!({ "tolerations": [{ "key": "a b" }] })),
        (
            "tolerations",
            json!({ "tolerations": [{ "key": "a", "value": "{{ x }}" }] }),
        ),
        (
            "postgres.credentialsSecret",
            json!({ "postgres": { "credentialsSecret": "../other/secrets/pg" } }),
        ),
        ("profile", json!({ "profile": "../../api/v1/secrets" })),
        ("version", json!({ "version": "{{ x }}" })),
        ("helm.version", json!({ "helm": { "version": "{{ x }}" } })),
    ] {
        let refused = env.refused(spec.clone()).await;
        assert!(refused.contains(field), "{spec}: {refused}");
    }
    env.instance(
        "shop",
        json!({ "postgres": { "storage": { "size": "20Gi" } }, "backupSchedule": "@daily" }),
    )
    .await;
    env.instance(
        "shop",
        json!({ "postgres": { "storage": { "size": 1_073_741_824 } } }),
    )
    .await;
    let tolerations = json!([
        { "operator": "Exists" },
        { "key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30 },
        { "key": "dedicated", "operator": "Equal", "value": "GitLab_1.x", "effect": "NoSchedule" },
        { "key": "", "operator": "Exists", "value": "", "effect": "" },
    ]);
    env.instance("shop", json!({ "tolerations": tolerations })).await;
}
