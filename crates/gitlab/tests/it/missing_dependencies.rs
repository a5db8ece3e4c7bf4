//! Missing dependencies, on empty clusters: the operator notices each one when it appears.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt as _;
use serde_json::{Value, json};
use stanchion_api::gitlab::Phase;
use stanchion_gitlab::backends::kinds::PERCONA;
use stanchion_gitlab::flux::{HELM_RELEASE, HELM_REPOSITORY};

use crate::definitions;
use crate::test_env::{TestEnv, ready};

pub(crate) async fn install(env: &TestEnv, group: &str) {
    let all: Vec<CustomResourceDefinition> = definitions::best();
    let some = all.into_iter().filter(|crd| crd.spec.group == group);
    env.cluster.install_crds(some.collect::<Vec<_>>()).await;
}

pub(crate) async fn map(env: &TestEnv, versions: &Value) {
    let map = json!({
        "apiVersion": "k8s.bnerd.com/v1alpha1", "kind": "GitlabVersionMap",
        "metadata": { "name": "default" }, "spec": { "versions": versions },
    });
    env.cluster.apply(&map.to_string(), "").await;
}

#[tokio::test]
async fn the_map_a_version_a_profile_and_flux_may_come_late() {
    let env = TestEnv::bare().await;
    let _operator = env.operator().await;
    env.create_provided_secrets().await;
    env.instance("shop", json!({ "version": "18.8", "profile": "production" }))
        .await;
    env.shows("shop", Phase::Pending, "VersionMapMissing").await;
    map(&env, &json!({ "18.11.6": { "chartVersion": "9.11.7" } })).await;
    let unknown = env.shows("shop", Phase::Failed, "VersionUnknown").await;
    assert!(ready(&unknown).1.contains("18.8"), "{:?}", ready(&unknown));
    map(
        &env,
        &json!({ "18.8.9": { "chartVersion": "9.8.10" }, "18.8.10": { "chartVersion": "9.8.11" } }),
    )
    .await;
    env.shows("shop", Phase::Pending, "ProfileMissing").await;
    let profile = json!({
        "apiVersion": "k8s.bnerd.com/v1alpha1", "kind": "GitlabProfile", "metadata": { "name": "production" },
        "spec": { "defaults": { "backupSchedule": "30 2 * * *" } },
    });
    env.cluster.apply(&profile.to_string(), "").await;
    let fluxless = env.shows("shop", Phase::Failed, "FluxMissing").await;
    assert!(
        ready(&fluxless).1.contains("helmreleases.helm.toolkit.fluxcd.io"),
        "{:?}",
        ready(&fluxless)
    );
    install(&env, HELM_REPOSITORY.group).await;
    install(&env, HELM_RELEASE.group).await;
    let release = env.release_of("shop", "9.8.11").await;
    let schedule = release
        .data
        .pointer("/spec/values/gitlab/toolbox/backups/cron/schedule");
    assert_eq!(schedule, Some(&json!("30 2 * * *")));
    env.phase("shop", Phase::Deploying).await;
}

#[tokio::test]
async fn a_chart_that_is_named_needs_no_map_and_an_operator_may_come_late() {
    let env = TestEnv::bare().await;
    let _operator = env.operator().await;
    env.create_provided_secrets().await;
    install(&env, HELM_REPOSITORY.group).await;
    install(&env, HELM_RELEASE.group).await;
    env.instance("shop", json!({ "helm": { "version": "9.2.8" } }))
        .await;
    env.release_of("shop", "9.2.8").await;
    env.instance(
        "managed",
        json!({
            "helm": { "version": "9.2.8" }, "postgres": { "managed": true, "credentialsSecret": null },
        }),
    )
    .await;
    let failed = env
        .shows("managed", Phase::Failed, "PostgresOperatorMissing")
        .await;
    assert!(
        ready(&failed).1.contains("perconapgclusters.pgv2.percona.com"),
        "{:?}",
        ready(&failed)
    );
    env.no_release("managed").await;
    install(&env, PERCONA.group).await;
    env.shows("managed", Phase::Provisioning, "PostgresProvisioning")
        .await;
    env.external(&PERCONA).get("managed-pg").await.unwrap();
}

/// The version that the original writes is the oldest one; newer Flux versions no longer serve it.
#[tokio::test]
async fn every_flux_gets_a_version_that_it_serves() {
    for (versions, expected) in [
        (&["v2beta1", "v2beta2"][..], "v2beta2"),
        (&["v2beta1"], "v2beta1"),
    ] {
        let env = TestEnv::bare().await;
        let _operator = env.operator().await;
        env.create_provided_secrets().await;
        install(&env, HELM_REPOSITORY.group).await;
        let stand_in = definitions::stand_ins()
            .into_iter()
            .find(|crd| crd.name_any() == HELM_RELEASE.definition());
        let mut older = stand_in.unwrap();
        let newest = older.spec.versions[0].clone();
        older.spec.versions = versions
            .iter()
            .map(|version| {
                let mut older = newest.clone();
                older.name = (*version).into();
                older.storage = *version == expected;
                older
            })
            .collect();
        env.cluster.install_crds([older]).await;
        env.instance("shop", json!({ "helm": { "version": "8.11.8" } }))
            .await;
        let releases = env.external_at(&HELM_RELEASE, expected);
        let is_there = async || releases.get_opt("shop-gitlab").await.unwrap().is_some();
        env.wait().eventually("the release", is_there).await;
        env.phase("shop", Phase::Deploying).await;
    }
}

#[tokio::test]
async fn a_missing_chart_is_reported_and_can_be_corrected() {
    let env = TestEnv::bare().await;
    for group in [HELM_REPOSITORY.group, HELM_RELEASE.group] {
        install(&env, group).await;
    }
    let versions =
        |chart: &str| json!({ "17.3.0": { "chartVersion": "8.3.0" }, "17.5.5": { "chartVersion": chart } });
    map(&env, &versions("8.5.99")).await;
    let _operator = env.operator().await;
    env.create_provided_secrets().await;
    env.instance(
        "shop",
        json!({ "version": "17.3.0", "upgrade": { "waitForMigrations": false } }),
    )
    .await;
    env.release_of("shop", "8.3.0").await;
    env.installed("shop", "17.3.0").await;
    env.phase("shop", Phase::Ready).await;

    env.respec("shop", json!({ "version": "17.5.5" })).await;
    env.release_of("shop", "8.5.99").await;
    env.failed("shop", "SourceNotReady", "no chart 8.5.99").await;
    let degraded = env.shows("shop", Phase::Degraded, "SourceNotReady").await;
    assert!(ready(&degraded).1.contains("8.5.99"), "{:?}", ready(&degraded));
    map(&env, &versions("8.5.5")).await;
    env.release_of("shop", "8.5.5").await;
    env.installed("shop", "17.5.5").await;
    env.phase("shop", Phase::Ready).await;
}
