//! Adopts an installation of another operator.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kube::ResourceExt as _;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use stanchion_api::gitlab::Phase;
use stanchion_gitlab::flux::HELM_RELEASE;

use crate::bed::{Bed, ready, secret_text};

#[tokio::test]
async fn a_release_of_another_name_stays_the_release() {
    let bed = Bed::new().await;
    bed.brought().await;
    let instance = bed.instance("shop", json!({})).await;
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
    let releases = bed.foreign(&HELM_RELEASE);
    let params = PostParams {
        field_manager: Some("old".into()),
        ..PostParams::default()
    };
    let before = releases.create(&params, &theirs).await.unwrap();
    // The Secret that it created has no owner, and is listed in the status that it wrote.
    let listed = Patch::Merge(json!({ "status": { "secrets": ["shop-gitlab-registry-storage"] } }));
    bed.instances()
        .patch_status("shop", &PatchParams::default(), &listed)
        .await
        .unwrap();
    bed.secret("shop-gitlab-registry-storage", json!({ "config": "old" }))
        .await;

    let _operator = bed.operator().await;
    bed.phase("shop", Phase::Deploying).await;
    bed.wait()
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
    bed.no_release("shop").await;
    let is_ours = |secret: &k8s_openapi::api::core::v1::Secret| !secret.owner_references().is_empty();
    bed.wait()
        .until(&bed.secrets(), "shop-gitlab-registry-storage", is_ours)
        .await;
}

#[tokio::test]
async fn what_somebody_does_to_the_release_is_undone() {
    let bed = Bed::new().await;
    let _operator = bed.operator().await;
    bed.brought().await;
    bed.instance("shop", json!({})).await;
    bed.release_of("shop", "8.11.8").await;
    bed.phase("shop", Phase::Deploying).await;
    let releases = bed.foreign(&HELM_RELEASE);
    let patch = Patch::Merge(json!({ "spec": { "chart": { "spec": { "version": "1.0.0" } } } }));
    releases
        .patch("shop-gitlab", &PatchParams::default(), &patch)
        .await
        .unwrap();
    bed.release_of("shop", "8.11.8").await;
    releases
        .delete("shop-gitlab", &DeleteParams::default())
        .await
        .unwrap();
    bed.release_of("shop", "8.11.8").await;
}

/// An object that only has the name belongs to somebody else, and stays as it is.
#[tokio::test]
async fn what_nobody_recognises_is_not_overwritten() {
    let bed = Bed::new().await;
    let _operator = bed.operator().await;
    bed.brought().await;
    let releases = bed.foreign(&HELM_RELEASE);
    let theirs = serde_json::from_value(json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": { "name": "shop-gitlab" },
        "spec": { "interval": "5m", "chart": { "spec": {
            "chart": "nextcloud", "version": "1.0.0", "sourceRef": { "kind": "HelmRepository", "name": "other" },
        }}},
    }))
    .unwrap();
    let before = releases.create(&PostParams::default(), &theirs).await.unwrap();
    bed.instance("shop", json!({})).await;
    let refused = bed.shows("shop", Phase::Failed, "NotOurs").await;
    let words = ready(&refused).1;
    assert!(
        words.contains("HelmRelease shop-gitlab") && words.contains("nextcloud"),
        "{words}"
    );
    let after = releases.get("shop-gitlab").await.unwrap();
    assert_eq!(after.resource_version(), before.resource_version());
    bed.delete("shop").await;
    bed.wait().gone(&bed.instances(), "shop").await;
    releases.get("shop-gitlab").await.expect("it is somebody's");

    bed.secret(
        "fresh-gitlab-rails-storage",
        json!({ "connection": "somebody's" }),
    )
    .await;
    bed.instance("fresh", json!({})).await;
    let refused = bed.shows("fresh", Phase::Failed, "NotOurs").await;
    assert!(ready(&refused).1.contains("Secret fresh-gitlab-rails-storage"));
    bed.delete("fresh").await;
    bed.wait().gone(&bed.instances(), "fresh").await;
    let kept = bed.secrets().get("fresh-gitlab-rails-storage").await.unwrap();
    assert_eq!(secret_text(&kept, "connection"), "somebody's");
}

/// Helm alone installed 17.8.7; the instance requests 18.2.8.
#[tokio::test]
async fn a_plain_helm_install_is_upgraded_over_every_stop() {
    let bed = Bed::new().await;
    let _operator = bed.operator().await;
    bed.brought().await;
    let release =
        json!({ "chart": { "metadata": { "name": "gitlab", "version": "8.8.7", "appVersion": "v17.8.7" } } });
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1",
        "metadata": {
            "name": "sh.helm.release.v1.shop.v1",
            "labels": { "owner": "helm", "name": "shop", "status": "deployed", "version": "1" },
        },
        // Helm also reads uncompressed releases.
        "stringData": { "release": BASE64_STANDARD.encode(release.to_string()) },
    });
    let secret = serde_json::from_value(secret).unwrap();
    bed.secrets()
        .create(&PostParams::default(), &secret)
        .await
        .unwrap();
    bed.instance(
        "shop",
        json!({ "version": "18.2.8", "upgrade": { "waitForMigrations": false } }),
    )
    .await;
    bed.release_of("shop", "8.11.8").await;
    let told = bed.phase("shop", Phase::Deploying).await.status.unwrap();
    assert_eq!(told.observed_version.as_deref(), Some("17.8.7"));
    assert_eq!(told.upgrade_path, ["17.11.7", "18.2.8"]);
    bed.installed("shop", "17.11.7").await;
    bed.release_of("shop", "9.2.8").await;
}
