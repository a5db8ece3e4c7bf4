//! From the first apply to ready, on provided backends.

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::events::v1::Event;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use stanchion_api::gitlab::Phase;
use stanchion_gitlab::flux::HELM_REPOSITORY;
use stanchion_testkit::faults::Faults;

use crate::test_env::{TestEnv, buckets, ready, secret_text};

fn value<'a>(release: &'a kube::core::DynamicObject, path: &str) -> &'a Value {
    release
        .data
        .pointer(&format!("/spec/values{path}"))
        .unwrap_or(&Value::Null)
}

#[tokio::test]
async fn a_small_instance_becomes_a_release_and_is_ready_when_flux_says_so() {
    let env = TestEnv::new().await;
    let operator = env.operator().await;
    env.create_provided_secrets().await;
    let instance = env.instance("shop", json!({})).await;

    let release = env.release("shop").await;
    assert_eq!(
        release.data.pointer("/spec/chart/spec/version"),
        Some(&json!("8.11.8"))
    );
    assert_eq!(
        release.data.pointer("/spec/chart/spec/chart"),
        Some(&json!("gitlab"))
    );
    let repository = env.external(&HELM_REPOSITORY).get("shop-gitlab").await.unwrap();
    assert_eq!(
        repository.data.pointer("/spec/url"),
        Some(&json!("https://charts.gitlab.io"))
    );
    for object in [&release, &repository] {
        let owners = object.owner_references();
        assert_eq!(owners[0].uid, instance.uid().unwrap(), "{owners:?}");
    }
    for (path, expected) in [
        ("/global/hosts/gitlab/name", json!("git.example.com")),
        ("/global/psql/host", json!("127.0.0.1")),
        ("/global/psql/password/secret", json!("pg")),
        ("/global/redis/host", json!("redis.example.com")),
        ("/postgresql/install", json!(false)),
        ("/certmanager/install", json!(false)),
        ("/installCertmanager", Value::Null),
    ] {
        assert_eq!(value(&release, path), &expected, "{path}");
    }

    let deploying = env.phase("shop", Phase::Deploying).await;
    let status = deploying.status.unwrap();
    assert_eq!(status.chart_version.as_deref(), Some("8.11.8"));
    assert_eq!(status.observed_version, None, "nothing runs yet");
    assert!(status.host.unwrap().contains("git.example.com"));

    env.installed("shop", "17.11.7").await;
    let done = env.phase("shop", Phase::Ready).await;
    let version = done.status.as_ref().unwrap().observed_version.as_deref();
    assert_eq!(version, Some("17.11.7"));
    let conditions: Vec<(String, String)> = done
        .status
        .unwrap()
        .conditions
        .into_iter()
        .map(|condition| (condition.type_, condition.status))
        .collect();
    for kind in [
        "Ready",
        "PostgresReady",
        "RedisReady",
        "ObjectStorageReady",
        "Released",
    ] {
        assert!(
            conditions.contains(&(kind.into(), "True".into())),
            "{kind}: {conditions:?}"
        );
    }
    drop(operator);
    for canary in ["pg-canary", "redis-canary", "access-canary", "secret-canary"] {
        assert!(!env.log.text().contains(canary), "{canary} in the log");
        let release = serde_json::to_string(&env.release("shop").await).unwrap();
        assert!(!release.contains(canary), "{canary} in the release");
    }
}

#[tokio::test]
async fn the_current_state_of_a_release_is_reported() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.create_provided_secrets().await;
    env.instance("shop", json!({})).await;
    env.release("shop").await;
    env.failed("shop", "InstallFailed", "the migrations did not end")
        .await;
    let failed = env.shows("shop", Phase::Failed, "InstallFailed").await;
    assert_eq!(ready(&failed).1, "the migrations did not end");
    env.installed("shop", "17.11.7").await;
    env.phase("shop", Phase::Ready).await;
    // The next spec is another generation of the release: the old Ready does not count for it.
    env.respec(
        "shop",
        json!({ "helm": { "values": { "global": { "hosts": { "https": false } } } } }),
    )
    .await;
    env.phase("shop", Phase::Deploying).await;
    let release = env
        .release_where("shop", |release| {
            value(release, "/global/hosts/https") == &json!(false)
        })
        .await;
    assert_eq!(
        value(&release, "/global/hosts/gitlab/name"),
        &json!("git.example.com"),
        "siblings stay"
    );
    env.failed("shop", "UpgradeFailed", "a hook failed").await;
    env.shows("shop", Phase::Degraded, "UpgradeFailed").await;
}

#[tokio::test]
async fn secrets_are_waited_for_and_what_is_missing_in_them_is_named() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.instance("shop", json!({})).await;
    let pending = env.shows("shop", Phase::Pending, "PostgresSecretMissing").await;
    assert!(ready(&pending).1.contains("Secret pg"), "{:?}", ready(&pending));
    env.secret("pg", json!({ "host": "127.0.0.1", "port": "1" }))
        .await;
    let incomplete = env.shows("shop", Phase::Failed, "PostgresSecretIncomplete").await;
    assert!(
        ready(&incomplete).1.contains("password"),
        "{:?}",
        ready(&incomplete)
    );
    env.secret("pg", json!({ "host": "127.0.0.1", "port": "1", "password": "x" }))
        .await;
    env.shows("shop", Phase::Pending, "RedisSecretMissing").await;
    env.secret("redis", json!({ "host": "r", "port": "6379", "password": "x" }))
        .await;
    env.shows("shop", Phase::Pending, "S3SecretMissing").await;
    let mut incomplete = buckets();
    incomplete.as_object_mut().unwrap().remove("bucket.lfs");
    env.secret("s3", incomplete).await;
    let incomplete = env.shows("shop", Phase::Failed, "S3BucketsIncomplete").await;
    assert!(
        ready(&incomplete).1.contains("bucket.lfs"),
        "{:?}",
        ready(&incomplete)
    );
    env.no_release("shop").await;
    env.secret("s3", buckets()).await;
    env.release("shop").await;
}

#[tokio::test]
async fn the_buckets_are_written_in_three_formats_and_a_new_key_rolls_the_pods() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.create_provided_secrets().await;
    env.instance("shop", json!({})).await;
    let before = env.release("shop").await;
    let instance = env.phase("shop", Phase::Deploying).await;
    let names = [
        "shop-gitlab-registry-storage",
        "shop-gitlab-rails-storage",
        "shop-gitlab-backup-storage",
    ];
    let mut listed = instance.status.unwrap().secrets;
    listed.sort();
    let mut expected = names.map(str::to_owned);
    expected.sort();
    assert_eq!(listed, expected);
    let registry = env.secrets().get(names[0]).await.unwrap();
    assert!(secret_text(&registry, "config").contains("b-registry"));
    let rails = env.secrets().get(names[1]).await.unwrap();
    assert!(secret_text(&rails, "connection").contains("access-canary"));

    let mut rotated = buckets();
    rotated["accessKey"] = json!("access-rotated");
    env.secret("s3", rotated).await;
    let is_new = |secret: &Secret| secret_text(secret, "connection").contains("access-rotated");
    env.wait().until(&env.secrets(), names[1], is_new).await;
    let after = env
        .release_where("shop", |release| release.data["spec"] != before.data["spec"])
        .await;
    let differences = differences(&before.data["spec"], &after.data["spec"], "");
    assert!(
        !differences.is_empty() && differences.iter().all(|path| path.contains("nnotations")),
        "{differences:?}"
    );
}

fn differences(one: &Value, other: &Value, path: &str) -> Vec<String> {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let keys: std::collections::BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            let of = |map: &serde_json::Map<String, Value>, key: &String| {
                map.get(key).cloned().unwrap_or_default()
            };
            keys.into_iter()
                .flat_map(|key| differences(&of(one, key), &of(other, key), &format!("{path}/{key}")))
                .collect()
        }
        _ if one == other => Vec::new(),
        _ => vec![path.to_owned()],
    }
}

#[tokio::test]
async fn a_converged_object_is_not_written() {
    let env = TestEnv::new().await;
    let operator = env.operator().await;
    env.create_provided_secrets().await;
    for name in ["one", "two"] {
        env.instance(name, json!({})).await;
        env.release(name).await;
        env.installed(name, "17.11.7").await;
        env.phase(name, Phase::Ready).await;
    }
    operator.kill().await;
    let faults = Faults::new();
    let again = env.operator_with(&faults).await;
    env.wait()
        .eventually("both to be looked at", async || again.passes() >= 2)
        .await;
    again.idle().await;
    // A changed dependency with the same result.
    let passes = again.passes();
    let label = json!({ "metadata": { "labels": { "a": "b" } } });
    let params = kube::api::PatchParams::default();
    env.secrets()
        .patch("pg", &params, &kube::api::Patch::Merge(&label))
        .await
        .unwrap();
    env.wait()
        .eventually("both to be woken", async || again.passes() >= passes + 2)
        .await;
    again.idle().await;
    faults.settled().await;
    assert_eq!(faults.writes(), []);
}

#[tokio::test]
async fn a_suspended_instance_is_left_alone_and_still_goes() {
    let env = TestEnv::new().await;
    let faults = Faults::new();
    let _operator = env.operator_with(&faults).await;
    env.create_provided_secrets().await;
    env.instance("shop", json!({ "suspend": true })).await;
    env.phase("shop", Phase::Suspended).await;
    env.no_release("shop").await;
    env.delete("shop").await;
    env.wait().gone(&env.instances(), "shop").await;
}

/// Storage that is removed from the spec leaves nothing behind, and can be added again.
#[tokio::test]
async fn the_way_back_from_buckets_leads_back() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.create_provided_secrets().await;
    env.instance("shop", json!({})).await;
    env.release("shop").await;
    env.installed("shop", "17.11.7").await;
    env.phase("shop", Phase::Ready).await;
    env.respec("shop", json!({ "objectStorage": null })).await;
    env.release_where("shop", |release| {
        release.data.pointer("/spec/values/registry/storage").is_none()
    })
    .await;
    env.secrets()
        .get("shop-gitlab-rails-storage")
        .await
        .expect("until Flux is done, pods read it");
    env.installed("shop", "17.11.7").await;
    for part in ["registry", "rails", "backup"] {
        let name = format!("shop-gitlab-{part}-storage");
        env.wait().gone(&env.secrets(), &name).await;
    }
    env.until("shop", |instance| {
        instance.status.as_ref().unwrap().secrets.is_empty()
    })
    .await;
    env.respec("shop", json!({ "objectStorage": { "credentialsSecret": "s3" } }))
        .await;
    env.until("shop", |instance| {
        instance.status.as_ref().unwrap().secrets.len() == 3
    })
    .await;
    env.secrets().get("shop-gitlab-rails-storage").await.unwrap();
}

/// A part that is off needs no bucket; a new suspended instance reports that; VERSION is the running version.
#[tokio::test]
async fn the_status_shows_the_current_state() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.create_provided_secrets().await;
    let mut some = buckets();
    for bucket in ["bucket.pages", "bucket.registry", "bucket.backups"] {
        some.as_object_mut().unwrap().remove(bucket);
    }
    env.secret("some", some).await;
    let only = json!({
        "suspend": true, "domains": { "registry": null, "kas": null },
        "objectStorage": { "credentialsSecret": "some" },
    });
    env.instance("shop", only).await;
    let suspended = env.phase("shop", Phase::Suspended).await;
    assert_eq!(ready(&suspended).0, "Suspended");
    env.respec("shop", json!({ "suspend": false })).await;
    env.release("shop").await;
    let deploying = env.phase("shop", Phase::Deploying).await.status.unwrap();
    assert_eq!(deploying.observed_version, None, "nothing runs yet");
    env.installed("shop", "17.11.7").await;
    let runs = env.phase("shop", Phase::Ready).await.status.unwrap();
    assert_eq!(runs.observed_version.as_deref(), Some("17.11.7"));
    let events: Api<Event> = Api::namespaced(env.client.clone(), &env.namespace);
    let reported: Vec<String> = events
        .list(&ListParams::default())
        .await
        .unwrap()
        .into_iter()
        .filter_map(|event| event.reason)
        .collect();
    assert!(reported.contains(&"ReleaseAtWork".to_owned()), "{reported:?}");
    env.respec(
        "shop",
        json!({ "domains": { "registry": "registry.example.com" } }),
    )
    .await;
    let lacks = env.shows("shop", Phase::Failed, "S3BucketsIncomplete").await;
    assert!(ready(&lacks).1.contains("bucket.registry") && !ready(&lacks).1.contains("bucket.pages"));
    assert!(
        !ready(&lacks).1.contains("bucket.backups"),
        "nothing schedules backups"
    );
}
