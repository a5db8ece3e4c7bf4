//! Adopts an installation of another operator.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kube::ResourceExt as _;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
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

/// A revision of the release `shop`, as Helm records it.
async fn helm_revision(env: &TestEnv, chart: &str, version: &str, status: &str) {
    let release = json!({ "chart": { "metadata": { "name": "gitlab", "version": chart, "appVersion": format!("v{version}") } } });
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1",
        "metadata": {
            "name": "sh.helm.release.v1.shop.v1",
            "labels": { "owner": "helm", "name": "shop", "status": status, "version": "1" },
        },
        // Helm also reads uncompressed releases.
        "stringData": { "release": BASE64_STANDARD.encode(release.to_string()) },
    });
    let secret = serde_json::from_value(secret).unwrap();
    let params = PostParams::default();
    env.secrets().create(&params, &secret).await.unwrap();
}

/// A failed installation may have migrated the database.
#[tokio::test]
async fn what_helm_alone_failed_to_install_is_not_taken_back() {
    let (env, _operator) = TestEnv::operated().await;
    helm_revision(&env, "9.2.8", "18.2.8", "failed").await;
    env.instance("shop", json!({ "version": "17.11.7" })).await;
    let refused = env.shows("shop", Phase::Failed, "UpgradeBlocked").await;
    assert!(ready(&refused).1.contains("18.2.8"), "{:?}", ready(&refused));
    assert_eq!(refused.status.unwrap().observed_version, None, "it does not run");
    env.respec("shop", json!({ "version": "18.2.8" })).await;
    env.release_of("shop", "9.2.8").await;
}

/// What Flux itself failed to install first is replaced by what is requested next, as its Helm revision says nothing else.
#[tokio::test]
async fn a_failed_revision_of_flux_is_no_predecessor() {
    let (env, _operator) = TestEnv::operated().await;
    env.instance("shop", json!({ "version": "18.2.8" })).await;
    env.release_of("shop", "9.2.8").await;
    helm_revision(&env, "9.2.8", "18.2.8", "failed").await;
    env.failed("shop", "InstallFailed", "a hook failed").await;
    env.shows("shop", Phase::Failed, "InstallFailed").await;
    env.respec("shop", json!({ "version": "17.11.7" })).await;
    env.release_of("shop", "8.11.8").await;
}

/// Helm alone installed 17.8.7; the instance requests 18.2.8.
#[tokio::test]
async fn a_plain_helm_install_is_upgraded_over_every_stop() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.create_provided_secrets().await;
    helm_revision(&env, "8.8.7", "17.8.7", "deployed").await;
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
