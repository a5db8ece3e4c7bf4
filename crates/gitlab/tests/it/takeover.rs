//! Adopts an installation of another operator.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::core::DynamicObject;
use serde_json::{Value, json};
use stanchion_api::gitlab::Phase;
use stanchion_gitlab::flux::HELM_RELEASE;

use crate::test_env::{TestEnv, ready, secret_text};

#[tokio::test]
async fn a_release_of_another_name_stays_the_release() {
    let env = TestEnv::new().await;
    env.create_provided_secrets().await;
    let instance = env.instance("shop", json!({})).await;
    let owner = json!([{
        "apiVersion": "k8s.bnerd.com/v1alpha1", "kind": "GitlabInstance", "name": "shop",
        "uid": instance.uid().unwrap(), "controller": true,
    }]);
    let theirs = serde_json::from_value(json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
        "metadata": { "name": "shop", "ownerReferences": owner, "finalizers": ["finalizers.fluxcd.io"] },
        "spec": {
            "interval": "5m", "chart": { "spec": {
                "chart": "gitlab", "version": "8.11.8", "sourceRef": { "kind": "HelmRepository", "name": "old" },
            }},
            "values": { "global": { "hosts": { "domain": "old.example.com" } }, "leftover": true },
        },
    }))
    .unwrap();
    let releases = env.external(&HELM_RELEASE);
    let params = PostParams {
        field_manager: Some("old".into()),
        ..PostParams::default()
    };
    let before = releases.create(&params, &theirs).await.unwrap();
    // The Secret that it created has no owner, and is listed in the status that it wrote.
    let listed = Patch::Merge(json!({ "status": { "secrets": ["shop-gitlab-registry-storage"] } }));
    env.instances()
        .patch_status("shop", &PatchParams::default(), &listed)
        .await
        .unwrap();
    env.secret("shop-gitlab-registry-storage", json!({ "config": "old" }))
        .await;

    let _operator = env.operator().await;
    env.phase("shop", Phase::Deploying).await;
    env.wait()
        .eventually("the release to be ours", async || {
            let release = releases.get("shop").await.unwrap();
            release
                .data
                .pointer("/spec/values/global/hosts/gitlab/name")
                .is_some()
        })
        .await;
    let after = releases.get("shop").await.unwrap();
    assert_eq!(after.uid(), before.uid(), "it is the same release");
    assert_eq!(
        after.data.pointer("/spec/releaseName"),
        None,
        "and is called the same"
    );
    assert_eq!(
        after.data.pointer("/spec/values/leftover"),
        None,
        "what is not meant is taken away"
    );
    assert_eq!(
        after.finalizers(),
        ["finalizers.fluxcd.io"],
        "Flux still uninstalls it first"
    );
    env.no_release("shop").await;
    let is_ours = |secret: &k8s_openapi::api::core::v1::Secret| !secret.owner_references().is_empty();
    env.wait()
        .until(&env.secrets(), "shop-gitlab-registry-storage", is_ours)
        .await;
}

#[tokio::test]
async fn what_somebody_does_to_the_release_is_undone() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.create_provided_secrets().await;
    env.instance("shop", json!({})).await;
    env.release_of("shop", "8.11.8").await;
    env.phase("shop", Phase::Deploying).await;
    let releases = env.external(&HELM_RELEASE);
    let patch = Patch::Merge(json!({ "spec": { "chart": { "spec": { "version": "1.0.0" } } } }));
    releases
        .patch("shop-gitlab", &PatchParams::default(), &patch)
        .await
        .unwrap();
    env.release_of("shop", "8.11.8").await;
    releases
        .delete("shop-gitlab", &DeleteParams::default())
        .await
        .unwrap();
    env.release_of("shop", "8.11.8").await;
}

/// An object that only has the name belongs to somebody else, and stays as it is.
#[tokio::test]
async fn what_nobody_recognises_is_not_overwritten() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.create_provided_secrets().await;
    let releases = env.external(&HELM_RELEASE);
    let theirs = serde_json::from_value(json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": { "name": "shop-gitlab" },
        "spec": { "interval": "5m", "chart": { "spec": {
            "chart": "nextcloud", "version": "1.0.0", "sourceRef": { "kind": "HelmRepository", "name": "other" },
        }}},
    }))
    .unwrap();
    let before = releases.create(&PostParams::default(), &theirs).await.unwrap();
    env.instance("shop", json!({})).await;
    let refused = env.shows("shop", Phase::Failed, "NotOurs").await;
    let words = ready(&refused).1;
    assert!(
        words.contains("HelmRelease shop-gitlab") && words.contains("nextcloud"),
        "{words}"
    );
    let after = releases.get("shop-gitlab").await.unwrap();
    assert_eq!(after.resource_version(), before.resource_version());
    env.delete("shop").await;
    env.wait().gone(&env.instances(), "shop").await;
    releases.get("shop-gitlab").await.expect("it is somebody's");

    env.secret(
        "fresh-gitlab-rails-storage",
        json!({ "connection": "somebody's" }),
    )
    .await;
    env.instance("fresh", json!({})).await;
    let refused = env.shows("fresh", Phase::Failed, "NotOurs").await;
    assert!(ready(&refused).1.contains("Secret fresh-gitlab-rails-storage"));
    env.delete("fresh").await;
    env.wait().gone(&env.instances(), "fresh").await;
    let cached = env.secrets().get("fresh-gitlab-rails-storage").await.unwrap();
    assert_eq!(secret_text(&cached, "connection"), "somebody's");
}

/// A release of GitLab's chart under an instance's name, with one more field, and without a controller.
async fn uncontrolled(env: &TestEnv, instance: &str, field: &str, value: &Value) -> DynamicObject {
    let mut theirs = json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
        "metadata": { "name": format!("{instance}-gitlab") },
        "spec": { "interval": "5m", "chart": { "spec": {
            "chart": "gitlab", "version": "8.11.8", "sourceRef": { "kind": "HelmRepository", "name": "other" },
        }}},
    });
    theirs["spec"][field] = value.clone();
    let theirs = serde_json::from_value(theirs).unwrap();
    let releases = env.external(&HELM_RELEASE);
    releases.create(&PostParams::default(), &theirs).await.unwrap()
}

/// A GitLab in another namespace or another cluster stays: adopted, its release would install a second one here.
#[tokio::test]
async fn a_release_that_installs_elsewhere_is_not_adopted() {
    let (env, _operator) = TestEnv::operated().await;
    let releases = env.external(&HELM_RELEASE);
    for (number, (field, value)) in [
        ("targetNamespace", json!("elsewhere")),
        ("storageNamespace", json!("elsewhere")),
        ("kubeConfig", json!({ "secretRef": { "name": "other-cluster" } })),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("shop-{number}");
        let before = uncontrolled(&env, &name, field, &value).await;
        env.instance(&name, json!({})).await;
        let refused = env.shows(&name, Phase::Failed, "NotOurs").await;
        let words = ready(&refused).1;
        assert!(words.contains(field), "{field}: {words}");
        let after = releases.get(&format!("{name}-gitlab")).await.unwrap();
        assert_eq!(after.resource_version(), before.resource_version(), "{field}");
    }
}

/// Flux calls what it installs after the namespace, if the release names that: the name stays when the field goes.
#[tokio::test]
async fn a_release_that_names_this_namespace_is_adopted_with_its_name() {
    let (env, _operator) = TestEnv::operated().await;
    uncontrolled(&env, "shop", "targetNamespace", &json!(env.namespace)).await;
    env.instance("shop", json!({})).await;
    let adopted = env
        .release_where("shop", |release| {
            let host = release.data.pointer("/spec/values/global/hosts/gitlab/name");
            host.is_some()
        })
        .await;
    let name = format!("{}-shop-gitlab", env.namespace);
    assert_eq!(adopted.data.pointer("/spec/releaseName"), Some(&json!(name)));
}

/// A revision of an instance's release, as Helm records it.
async fn helm_revision(env: &TestEnv, name: &str, (chart, version): (&str, &str), status: &str) {
    let release = json!({ "chart": { "metadata": { "name": "gitlab", "version": chart, "appVersion": format!("v{version}") } } });
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1",
        "metadata": {
            "name": format!("sh.helm.release.v1.{name}.v1"),
            "labels": { "owner": "helm", "name": name, "status": status, "version": "1" },
        },
        // Helm also reads uncompressed releases.
        "stringData": { "release": BASE64_STANDARD.encode(release.to_string()) },
    });
    let secret = serde_json::from_value(secret).unwrap();
    let params = PostParams::default();
    env.secrets().create(&params, &secret).await.unwrap();
}

/// An installation that failed or was interrupted may have migrated the database; one that is uninstalled has.
#[tokio::test]
async fn what_helm_alone_tried_to_install_is_not_taken_back() {
    let (env, _operator) = TestEnv::operated().await;
    for status in [
        "failed",
        "uninstalled",
        "uninstalling",
        "pending-install",
        "pending-upgrade",
        "pending-rollback",
    ] {
        helm_revision(&env, status, ("9.2.8", "18.2.8"), status).await;
        env.instance(status, json!({ "version": "17.11.7" })).await;
        let refused = env.shows(status, Phase::Failed, "UpgradeBlocked").await;
        let words = ready(&refused).1;
        assert!(words.contains("18.2.8") && words.contains("history"), "{words}");
        let observed = refused.status.unwrap().observed_version;
        assert_eq!(observed, None, "{status}: it does not run");
        env.respec(status, json!({ "version": "18.2.8" })).await;
        env.release_of(status, "9.2.8").await;
    }
}

/// What Flux itself failed to install may have migrated the database: nothing older follows, unless the database is new.
#[tokio::test]
async fn a_failed_revision_of_flux_is_not_taken_back() {
    let (env, _operator) = TestEnv::operated().await;
    env.instance("shop", json!({ "version": "18.2.8" })).await;
    env.release_of("shop", "9.2.8").await;
    helm_revision(&env, "shop", ("9.2.8", "18.2.8"), "failed").await;
    env.failed("shop", "InstallFailed", "a hook failed").await;
    env.shows("shop", Phase::Failed, "InstallFailed").await;
    env.respec("shop", json!({ "version": "17.11.7" })).await;
    let refused = env.shows("shop", Phase::Failed, "UpgradeBlocked").await;
    let words = ready(&refused).1;
    let sources = "HelmRelease shop-gitlab and ConfigMap shop-gitlab-installed record 18.2.8";
    assert!(words.contains(sources), "{words}");
    env.release_of("shop", "9.2.8").await;

    let params = DeleteParams::default();
    env.secrets()
        .delete("sh.helm.release.v1.shop.v1", &params)
        .await
        .unwrap();
    let records = env.api::<ConfigMap>();
    records.delete("shop-gitlab-installed", &params).await.unwrap();
    let releases = env.external(&HELM_RELEASE);
    releases.delete("shop-gitlab", &params).await.unwrap();
    env.release_of("shop", "8.11.8").await;
}

/// Helm alone installed 17.8.7; the instance requests 18.2.8.
#[tokio::test]
async fn a_plain_helm_install_is_upgraded_over_every_stop() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.create_provided_secrets().await;
    helm_revision(&env, "shop", ("8.8.7", "17.8.7"), "deployed").await;
    env.instance(
        "shop",
        json!({ "version": "18.2.8", "upgrade": { "waitForMigrations": false } }),
    )
    .await;
    env.release_of("shop", "8.11.8").await;
    let reported = env.phase("shop", Phase::Deploying).await.status.unwrap();
    assert_eq!(reported.observed_version.as_deref(), Some("17.8.7"));
    assert_eq!(reported.upgrade_path, ["17.11.7", "18.2.8"]);
    env.installed("shop", "17.11.7").await;
    env.release_of("shop", "9.2.8").await;
}
