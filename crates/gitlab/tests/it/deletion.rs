//! Deletion of an instance: the order, and what stays.

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::events::v1::Event;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;
use stanchion_api::GitlabInstance;
use stanchion_api::gitlab::Phase;
use stanchion_gitlab::backends::kinds::{PERCONA, REDIS};
use stanchion_gitlab::flux::{HELM_RELEASE, HELM_REPOSITORY};

use crate::definitions;
use crate::managed::say;
use crate::test_env::{TestEnv, ready};

const STORAGE: &str = "shop-gitlab-rails-storage";

/// The event with this reason.
async fn event(env: &TestEnv, reason: &str) -> Option<Event> {
    let events: Api<Event> = Api::namespaced(env.client.clone(), &env.namespace);
    let reported = events.list(&ListParams::default()).await.unwrap();
    reported
        .into_iter()
        .find(|event| event.reason.as_deref() == Some(reason))
}

/// What the event about a deleted instance says.
async fn retained(env: &TestEnv) -> Option<String> {
    event(env, "Retained").await?.note
}

/// Waits until `Ready` and an event say what the deletion of `shop` waits for.
async fn waits_for(env: &TestEnv, reason: &str) {
    env.until_condition::<GitlabInstance>("shop", "Ready", "False", reason)
        .await;
    env.wait()
        .eventually("the event", async || {
            let event = event(env, reason).await;
            event.is_some_and(|event| event.action.as_deref() == Some("Wait"))
        })
        .await;
}

#[tokio::test]
async fn gitlab_goes_first_then_its_secrets_and_data_stays() {
    let (env, _operator) = TestEnv::operated().await;
    env.instance("shop", json!({})).await;
    env.release("shop").await;
    env.flux_holds_the_release().await;
    env.installed("shop", "17.11.7").await;
    env.phase("shop", Phase::Ready).await;

    env.delete("shop").await;
    env.phase("shop", Phase::Terminating).await;
    waits_for(&env, "Uninstalling").await;
    let leaving = env.external(&HELM_RELEASE).get("shop-gitlab").await.unwrap();
    assert!(leaving.metadata.deletion_timestamp.is_some());
    env.secrets().get(STORAGE).await.expect("its pods still read it");
    env.flux_releases_it().await;

    env.wait().gone(&env.instances(), "shop").await;
    env.wait().gone(&env.secrets(), STORAGE).await;
    let stays = retained(&env).await.expect("an event names what stays");
    assert!(stays.contains("shop-rails-secret"), "{stays}");
    let repositories = env.external(&HELM_REPOSITORY);
    env.wait()
        .eventually("the collector", async || {
            repositories.get_opt("shop-gitlab").await.unwrap().is_none()
        })
        .await;
    for name in ["pg", "redis", "s3"] {
        env.secrets().get(name).await.expect("it is the user's");
    }
}

/// Flux does not uninstall a suspended release that is deleted: GitLab would run on without its Secrets.
#[tokio::test]
async fn a_suspended_release_is_left_to_a_person() {
    let (env, _operator) = TestEnv::operated().await;
    env.instance("shop", json!({})).await;
    env.release("shop").await;
    let releases = env.external(&HELM_RELEASE);
    let suspend = async |suspended: bool| {
        let patch = Patch::Merge(json!({ "spec": { "suspend": suspended } }));
        let params = PatchParams::default();
        releases.patch("shop-gitlab", &params, &patch).await.unwrap();
    };
    suspend(true).await;
    env.delete("shop").await;
    let waits = env.phase("shop", Phase::Terminating).await;
    let message = waits.status.unwrap().message.unwrap();
    assert!(message.contains("suspended"), "{message}");
    waits_for(&env, "ReleaseSuspended").await;
    let release = releases.get("shop-gitlab").await.unwrap();
    assert_eq!(release.metadata.deletion_timestamp, None);
    env.secrets().get(STORAGE).await.expect("its pods still read it");
    suspend(false).await;
    env.wait().gone(&env.instances(), "shop").await;
    env.wait().gone(&env.secrets(), STORAGE).await;
}

#[tokio::test]
async fn a_managed_database_outlives_its_instance_and_is_found_again() {
    let (env, _operator) = TestEnv::operated().await;
    let managed = json!({ "postgres": { "managed": true, "credentialsSecret": null } });
    env.instance("shop", managed.clone()).await;
    env.shows("shop", Phase::Provisioning, "PostgresProvisioning")
        .await;
    let before = env.external(&PERCONA).get("shop-pg").await.unwrap();
    env.delete("shop").await;
    env.wait().gone(&env.instances(), "shop").await;
    let stays = retained(&env).await.expect("an event names what stays");
    assert!(stays.contains("PerconaPGCluster shop-pg"), "{stays}");
    assert!(!stays.contains("rails-secret"), "nothing was installed: {stays}");
    assert_eq!(
        before.metadata.labels.as_ref().unwrap()["stanchion.dev/gitlab-instance"],
        "shop"
    );
    env.instance("shop", managed).await;
    env.shows("shop", Phase::Provisioning, "PostgresProvisioning")
        .await;
    let after = env.external(&PERCONA).get("shop-pg").await.unwrap();
    assert_eq!(after.metadata.uid, before.metadata.uid);
    assert_eq!(after.metadata.resource_version, before.metadata.resource_version);
}

#[tokio::test]
async fn without_flux_an_instance_still_goes() {
    let env = TestEnv::bare().await;
    let _operator = env.operator().await;
    env.create_provided_secrets().await;
    env.instance("shop", json!({ "helm": { "version": "8.11.8" } }))
        .await;
    env.shows("shop", Phase::Failed, "FluxMissing").await;
    env.instances()
        .delete("shop", &DeleteParams::default())
        .await
        .unwrap();
    env.wait().gone(&env.instances(), "shop").await;
}

/// A deletion does not need the other operators, also if one of them is too old for this operator.
#[tokio::test]
async fn another_operator_that_is_too_old_does_not_keep_an_instance() {
    let env = TestEnv::bare().await;
    let mut redis = definitions::stand_ins()
        .into_iter()
        .find(|crd| crd.name_any() == REDIS.definition())
        .unwrap();
    redis.spec.versions[0].name = "v1beta1".into();
    env.cluster.install_crds([redis]).await;
    let _operator = env.operator().await;
    env.create_provided_secrets().await;
    env.instance("shop", json!({ "helm": { "version": "8.11.8" } }))
        .await;
    env.shows("shop", Phase::Failed, "FluxMissing").await;
    env.delete("shop").await;
    env.wait().gone(&env.instances(), "shop").await;
}

/// The database stays, and refuses a version that is older than its schema.
#[tokio::test]
async fn a_database_that_stays_remembers_the_last_version() {
    let (env, _operator) = TestEnv::operated().await;
    env.running("18.2.8", "9.2.8").await;
    env.delete("shop").await;
    env.wait().gone(&env.instances(), "shop").await;
    env.instance("shop", json!({ "version": "17.11.7" })).await;
    let refused = env.shows("shop", Phase::Failed, "UpgradeBlocked").await;
    assert!(
        ready(&refused).1.contains("shop-gitlab-installed"),
        "{:?}",
        ready(&refused)
    );
    env.no_release("shop").await;
    env.respec("shop", json!({ "version": "18.2.8" })).await;
    env.release_of("shop", "9.2.8").await;
}

/// A managed database that stays is known by its object: a new one of the same name has no version.
#[tokio::test]
async fn a_managed_database_that_stays_remembers_the_last_version() {
    let (env, _operator) = TestEnv::operated().await;
    let managed = |version: &str| json!({ "version": version, "postgres": { "managed": true, "credentialsSecret": null } });
    env.instance("shop", managed("18.2.8")).await;
    env.shows("shop", Phase::Provisioning, "PostgresProvisioning")
        .await;
    say(&env, &PERCONA, "shop-pg", json!({ "state": "ready" })).await;
    env.secret("shop-pg-pguser-gitlab", json!({
        "host": "shop-pg-primary.gl.svc", "port": "5432", "user": "gitlab", "password": "x", "dbname": "gitlabhq_production",
    }))
    .await;
    env.release_of("shop", "9.2.8").await;
    env.installed("shop", "18.2.8").await;
    env.phase("shop", Phase::Ready).await;
    env.delete("shop").await;
    env.wait().gone(&env.instances(), "shop").await;

    env.instance("shop", managed("17.11.7")).await;
    let refused = env.shows("shop", Phase::Failed, "UpgradeBlocked").await;
    let words = ready(&refused).1;
    assert!(
        words.contains("18.2.8") && words.contains("shop-gitlab-installed"),
        "{words}"
    );
    env.no_release("shop").await;
    let clusters = env.external(&PERCONA);
    clusters
        .delete("shop-pg", &DeleteParams::default())
        .await
        .unwrap();
    env.shows("shop", Phase::Provisioning, "PostgresProvisioning")
        .await;
}

/// A version that Flux has begun may have migrated the database, also if it never ran.
#[tokio::test]
async fn a_version_that_was_begun_is_remembered_like_one_that_ran() {
    let (env, _operator) = TestEnv::operated().await;
    for name in ["fails", "works"] {
        env.instance(name, json!({ "version": "18.2.8" })).await;
        env.release_of(name, "9.2.8").await;
        if name == "fails" {
            env.failed(name, "InstallFailed", "a hook failed").await;
            env.shows(name, Phase::Failed, "InstallFailed").await;
        } else {
            env.works(name, "Running 'install' action").await;
            env.until(name, |instance| ready(instance).1.contains("Running"))
                .await;
        }
        env.delete(name).await;
        env.wait().gone(&env.instances(), name).await;
        env.instance(name, json!({ "version": "17.11.7" })).await;
        env.shows(name, Phase::Failed, "UpgradeBlocked").await;
        env.no_release(name).await;
    }
}

/// Flux may begin after the last pass before the deletion.
#[tokio::test]
async fn a_version_that_flux_begins_during_the_deletion_is_remembered() {
    let (env, operator) = TestEnv::operated().await;
    env.instance("shop", json!({ "version": "18.2.8" })).await;
    env.release_of("shop", "9.2.8").await;
    env.phase("shop", Phase::Deploying).await;
    operator.kill().await;
    env.flux_holds_the_release().await;
    env.works("shop", "Running 'install' action").await;
    env.instances()
        .delete("shop", &DeleteParams::default())
        .await
        .unwrap();
    let _operator = env.operator().await;
    let record =
        |map: &ConfigMap| map.data.as_ref().unwrap().get("begun").map(String::as_str) == Some("18.2.8");
    env.wait()
        .until(&env.api::<ConfigMap>(), "shop-gitlab-installed", record)
        .await;
    waits_for(&env, "WaitingForFlux").await;
    env.flux_releases_it().await;
    env.wait().gone(&env.instances(), "shop").await;
    env.instance("shop", json!({ "version": "17.11.7" })).await;
    env.shows("shop", Phase::Failed, "UpgradeBlocked").await;
}

/// Not even the record of the versions keeps an instance: somebody may have made a `ConfigMap` of its name.
#[tokio::test]
async fn a_record_of_somebody_else_does_not_keep_an_instance() {
    let (env, _operator) = TestEnv::operated().await;
    env.instance("shop", json!({ "version": "18.2.8" })).await;
    env.release_of("shop", "9.2.8").await;
    let theirs = json!({ "metadata": { "name": "shop-gitlab-installed" }, "data": { "theirs": "yes" } });
    let maps = env.api::<ConfigMap>();
    let params = PostParams::default();
    maps.create(&params, &serde_json::from_value(theirs).unwrap())
        .await
        .unwrap();
    env.works("shop", "Running 'install' action").await;
    env.delete("shop").await;
    env.wait().gone(&env.instances(), "shop").await;
    let map = maps.get("shop-gitlab-installed").await.unwrap();
    assert_eq!(map.data.unwrap()["theirs"], "yes");
}
