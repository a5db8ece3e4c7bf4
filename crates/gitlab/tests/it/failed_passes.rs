//! A pass that fails after it has read a change does not lose the change.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use stanchion_api::gitlab::Phase;
use stanchion_gitlab::flux::{HELM_RELEASE, HELM_REPOSITORY};
use stanchion_testkit::faults::{Call, Fault, Faults, Rule};

use crate::managed::stateful_set;
use crate::missing_dependencies::{install, map};
use crate::test_env::{TestEnv, buckets, secret_text};

#[tokio::test]
async fn a_key_that_changes_before_a_read_fails_reaches_the_pods() {
    let env = TestEnv::new().await;
    let faults = Faults::new();
    let operator = env.operator_with(&faults).await;
    env.create_provided_secrets().await;
    let redis = json!({ "managed": true, "credentialsSecret": null });
    env.instance("shop", json!({ "redis": redis })).await;
    // If it were there before the first pass, the release would be written twice.
    env.shows("shop", Phase::Provisioning, "RedisProvisioning").await;
    stateful_set(&env, "shop-redis", 1, "redis:7").await;
    env.release("shop").await;
    env.installed("shop", "17.11.7").await;
    env.phase("shop", Phase::Ready).await;

    let reads_redis = |call: &Call| call.target.resource == "statefulsets";
    faults.script(Rule::when(reads_redis, Fault::refuse(500)));
    let label = json!({ "metadata": { "labels": { "a": "b" } } });
    let sets: Api<StatefulSet> = env.api();
    sets.patch("shop-redis", &PatchParams::default(), &Patch::Merge(&label))
        .await
        .unwrap();
    let count = |is_so: fn(&Call) -> bool| faults.calls().iter().filter(|call| is_so(call)).count();
    env.wait()
        .eventually("a pass to fail", async || count(|call| call.disturbed) > 0)
        .await;
    let reads = || count(|call| call.target.name == "s3" && call.served == Some(200));
    let before = reads();
    let mut rotated = buckets();
    rotated["accessKey"] = json!("access-rotated");
    env.secret("s3", rotated).await;
    env.wait()
        .eventually("a pass to read the new key", async || reads() > before)
        .await;
    operator.idle().await;
    faults.relent();
    let is_new = |secret: &Secret| secret_text(secret, "connection").contains("access-rotated");
    env.wait()
        .until(&env.secrets(), "shop-gitlab-rails-storage", is_new)
        .await;
}

#[tokio::test]
async fn a_map_that_changes_while_a_plan_is_refused_is_used_when_it_no_longer_is() {
    let env = TestEnv::bare().await;
    let faults = Faults::new();
    let operator = env.operator_with(&faults).await;
    env.create_provided_secrets().await;
    for group in [HELM_REPOSITORY.group, HELM_RELEASE.group] {
        install(&env, group).await;
    }
    let versions = |patch: &str, chart: &str| json!({ patch: { "chartVersion": chart } });
    map(&env, &versions("17.11.7", "8.11.8")).await;
    env.running("17", "8.11.8").await;
    let repositories = env.external(&HELM_REPOSITORY);
    let owners = async |owners: Value| {
        let patch = Patch::Merge(json!({ "metadata": { "ownerReferences": owners } }));
        let params = PatchParams::default();
        repositories.patch("shop-gitlab", &params, &patch).await.unwrap();
    };
    let ours = repositories.get("shop-gitlab").await.unwrap().metadata;
    owners(Value::Null).await;
    env.shows("shop", Phase::Failed, "NotOurs").await;
    let reads = || {
        let calls = faults.calls().into_iter();
        calls.filter(|call| call.target.name == "default").count()
    };
    let before = reads();
    map(&env, &versions("17.11.8", "8.11.9")).await;
    env.wait()
        .eventually("the map to be read", async || reads() > before)
        .await;
    operator.idle().await;
    let release = env.release("shop").await;
    let chart = release.data.pointer("/spec/chart/spec/version");
    assert_eq!(chart, Some(&json!("8.11.8")), "the repository is still refused");
    owners(json!(ours.owner_references)).await;
    env.release_of("shop", "8.11.9").await;
}
