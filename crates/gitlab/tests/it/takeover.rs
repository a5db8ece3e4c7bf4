//! An installation that another operator made goes on under this one.

use kube::ResourceExt as _;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use stanchion_api::gitlab::Phase;
use stanchion_gitlab::flux::HELM_RELEASE;

use crate::bed::Bed;

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
    // The Secret that it made has no owner.
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
