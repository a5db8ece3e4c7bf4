//! Backends that other operators run: created in parallel, waited for, and never overwritten.

use k8s_openapi::api::apps::v1::StatefulSet;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::core::DynamicObject;
use serde_json::{Value, json};
use stanchion_api::GitlabInstance;
use stanchion_api::gitlab::Phase;
use stanchion_gitlab::backends::kinds::{ELASTICSEARCH, PERCONA, REDIS, REDIS_REPLICATION, REDIS_SENTINEL};
use stanchion_kernel::external::ExternalKind;

use crate::test_env::{TestEnv, ready, secret_text};

/// What the operator of a backend reports.
pub(crate) async fn say(env: &TestEnv, kind: &ExternalKind, name: &str, mut status: Value) {
    let api = env.external(kind);
    let object = api.get(name).await.unwrap();
    if status["observedGeneration"].is_null() {
        status["observedGeneration"] = json!(object.metadata.generation);
    }
    let patch = Patch::Merge(json!({ "status": status }));
    api.patch_status(name, &PatchParams::default(), &patch)
        .await
        .unwrap();
}

/// A `StatefulSet` as Redis' operator creates it; the cluster starts its pods or not, depending on the image.
pub(crate) async fn stateful_set(env: &TestEnv, name: &str, replicas: i32, image: &str) {
    let sets: Api<StatefulSet> = Api::namespaced(env.client.clone(), &env.namespace);
    let labels = json!({ "app": name });
    let set = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": { "name": name },
        "spec": {
            "replicas": replicas, "serviceName": name, "selector": { "matchLabels": labels },
            "podManagementPolicy": "Parallel",
            "template": { "metadata": { "labels": labels }, "spec": {
                "containers": [{ "name": "redis", "image": image }],
            }},
        },
    });
    let params = PatchParams::apply("redis-operator").force();
    sets.patch(name, &params, &Patch::Apply(&set)).await.unwrap();
    let is_seen = |set: &StatefulSet| {
        let status = set.status.as_ref();
        status.is_some_and(|status| status.observed_generation >= set.metadata.generation)
    };
    env.wait().until(&sets, name, is_seen).await;
}

fn value<'a>(release: &'a DynamicObject, path: &str) -> &'a Value {
    release
        .data
        .pointer(&format!("/spec/values{path}"))
        .unwrap_or(&Value::Null)
}

#[tokio::test]
async fn a_managed_database_is_made_waited_for_and_reached_behind_its_pooler() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.create_provided_secrets().await;
    let postgres = json!({ "managed": true, "pgbouncer": true, "topology": "ha", "credentialsSecret": null });
    env.instance("shop", json!({ "postgres": postgres })).await;
    env.shows("shop", Phase::Provisioning, "PostgresProvisioning")
        .await;
    env.no_release("shop").await;
    let cluster = env.external(&PERCONA).get("shop-pg").await.unwrap();
    assert_eq!(cluster.metadata.owner_references, None);
    assert_eq!(
        cluster.data.pointer("/spec/instances/0/replicas"),
        Some(&json!(3))
    );

    say(&env, &PERCONA, "shop-pg", json!({ "state": "initializing" })).await;
    env.shows("shop", Phase::Provisioning, "PostgresProvisioning")
        .await;
    say(&env, &PERCONA, "shop-pg", json!({ "state": "ready" })).await;
    env.shows("shop", Phase::Provisioning, "PostgresProvisioning")
        .await;
    env.no_release("shop").await;
    env.secret("shop-pg-pguser-gitlab", json!({
        "host": "shop-pg-primary.gl.svc", "port": "5432", "user": "gitlab", "password": "x",
        "dbname": "gitlabhq_production", "pgbouncer-host": "shop-pg-pgbouncer.gl.svc", "pgbouncer-port": "5432",
    }))
    .await;
    let release = env.release("shop").await;
    for (path, expected) in [
        ("/global/psql/host", "shop-pg-pgbouncer.gl.svc"),
        ("/global/psql/password/secret", "shop-pg-pguser-gitlab"),
        ("/global/psql/password/key", "password"),
        ("/gitlab/migrations/psql/host", "shop-pg-primary.gl.svc"),
        ("/gitlab/toolbox/psql/host", "shop-pg-primary.gl.svc"),
    ] {
        assert_eq!(value(&release, path), &json!(expected), "{path}");
    }
    assert_eq!(value(&release, "/global/psql/preparedStatements"), &json!(false));
    assert_eq!(value(&release, "/postgresql/install"), &json!(false));

    env.installed("shop", "17.11.7").await;
    env.phase("shop", Phase::Ready).await;
    say(&env, &PERCONA, "shop-pg", json!({ "state": "initializing" })).await;
    env.shows("shop", Phase::Degraded, "PostgresProvisioning").await;
}

/// A version that is refused changes nothing, and hides nothing.
#[tokio::test]
async fn a_database_is_reported_while_the_version_is_refused() {
    let (env, _operator) = TestEnv::operated().await;
    let postgres = json!({ "managed": true, "credentialsSecret": null });
    env.instance("shop", json!({ "version": "18.2.8", "postgres": postgres }))
        .await;
    env.shows("shop", Phase::Provisioning, "PostgresProvisioning")
        .await;
    say(&env, &PERCONA, "shop-pg", json!({ "state": "ready" })).await;
    env.secret("shop-pg-pguser-gitlab", json!({
        "host": "shop-pg-primary.gl.svc", "port": "5432", "user": "gitlab", "password": "x", "dbname": "gitlabhq_production",
    }))
    .await;
    env.release("shop").await;
    env.installed("shop", "18.2.8").await;
    env.phase("shop", Phase::Ready).await;
    env.respec("shop", json!({ "version": "17.11.7" })).await;
    env.shows("shop", Phase::Failed, "UpgradeBlocked").await;
    say(&env, &PERCONA, "shop-pg", json!({ "state": "initializing" })).await;
    env.until_condition::<GitlabInstance>("shop", "PostgresReady", "False", "PostgresProvisioning")
        .await;
    env.shows("shop", Phase::Failed, "UpgradeBlocked").await;
}

#[tokio::test]
async fn a_redis_of_one_server_is_ready_when_its_pod_is() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.create_provided_secrets().await;
    env.instance(
        "shop",
        json!({ "redis": { "managed": true, "credentialsSecret": null } }),
    )
    .await;
    env.shows("shop", Phase::Provisioning, "RedisProvisioning").await;
    env.external(&REDIS).get("shop-redis").await.unwrap();
    let auth = env.secrets().get("shop-redis-auth").await.unwrap();
    assert_eq!(
        auth.metadata.owner_references, None,
        "it is the password of something that stays"
    );
    let password = secret_text(&auth, "password");
    stateful_set(&env, "shop-redis", 1, "no-such-image:1").await;
    env.until("shop", |instance| ready(instance).1.contains("0 of 1 pods"))
        .await;
    env.no_release("shop").await;
    let sets: Api<StatefulSet> = Api::namespaced(env.client.clone(), &env.namespace);
    sets.delete("shop-redis", &DeleteParams::foreground())
        .await
        .unwrap();
    env.wait().gone(&sets, "shop-redis").await;
    stateful_set(&env, "shop-redis", 1, "redis:7").await;
    let release = env.release("shop").await;
    assert_eq!(
        value(&release, "/global/redis/auth/secret"),
        &json!("shop-redis-auth")
    );
    let after = env.secrets().get("shop-redis-auth").await.unwrap();
    assert_eq!(secret_text(&after, "password"), password);
}

#[tokio::test]
async fn a_redis_of_several_servers_is_asked_for_by_the_name_of_its_group() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.create_provided_secrets().await;
    let redis = json!({ "managed": true, "topology": "ha", "credentialsSecret": null });
    env.instance("shop", json!({ "redis": redis })).await;
    env.shows("shop", Phase::Provisioning, "RedisProvisioning").await;
    for kind in [&REDIS_REPLICATION, &REDIS_SENTINEL] {
        let object = env.external(kind).get("shop-redis").await.unwrap();
        assert_eq!(object.metadata.owner_references, None);
    }
    stateful_set(&env, "shop-redis", 3, "redis:7").await;
    stateful_set(&env, "shop-redis-sentinel", 3, "redis:7").await;
    let release = env.release("shop").await;
    assert_eq!(value(&release, "/global/redis/host"), &json!("gitlab"));
    let sentinels = value(&release, "/global/redis/sentinels").as_array().unwrap();
    assert!(!sentinels.is_empty(), "{sentinels:?}");
}

#[tokio::test]
async fn elasticsearch_is_made_for_the_enterprise_edition_and_holds_up_nothing() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.create_provided_secrets().await;
    env.secret("license", json!({ "license": "x" })).await;
    env.instance("small", json!({ "elasticsearch": { "managed": true } }))
        .await;
    let small = env.phase("small", Phase::Deploying).await;
    let said = small.status.unwrap().conditions;
    assert!(
        said.iter()
            .any(|it| it.type_ == "ElasticsearchReady" && it.reason == "EnterpriseOnly"),
        "{said:?}"
    );

    let enterprise =
        json!({ "edition": "ee", "licenseSecret": "license", "elasticsearch": { "managed": true } });
    env.instance("shop", enterprise).await;
    env.release("shop").await;
    env.installed("shop", "17.11.7").await;
    env.shows("shop", Phase::Degraded, "ElasticsearchProvisioning")
        .await;
    say(
        &env,
        &ELASTICSEARCH,
        "shop-es",
        json!({ "phase": "Ready", "health": "yellow" }),
    )
    .await;
    let done = env.phase("shop", Phase::Ready).await;
    let address = done.status.unwrap().elasticsearch.unwrap();
    assert!(address.url.contains("shop-es-es-http"), "{address:?}");
    assert!(
        env.external(&ELASTICSEARCH)
            .get_opt("small-es")
            .await
            .unwrap()
            .is_none()
    );
}

#[tokio::test]
async fn the_password_of_somebody_elses_redis_is_not_made_up() {
    let env = TestEnv::new().await;
    env.create_provided_secrets().await;
    let theirs = json!({
        "apiVersion": "redis.redis.opstreelabs.in/v1beta2", "kind": "Redis", "metadata": { "name": "shop-redis" },
        "spec": { "kubernetesConfig": { "image": "redis:7" } },
    });
    let api = env.external(&REDIS);
    api.patch(
        "shop-redis",
        &PatchParams::apply("somebody"),
        &Patch::Apply(&theirs),
    )
    .await
    .unwrap();
    let _operator = env.operator().await;
    env.instance(
        "shop",
        json!({ "redis": { "managed": true, "credentialsSecret": null } }),
    )
    .await;
    env.shows("shop", Phase::Pending, "RedisSecretMissing").await;
    env.secret("shop-redis-auth", json!({ "password": "theirs" }))
        .await;
    env.shows("shop", Phase::Provisioning, "RedisProvisioning").await;
    let auth = env.secrets().get("shop-redis-auth").await.unwrap();
    assert_eq!(secret_text(&auth, "password"), "theirs");
}

/// Somebody else's Sentinels may have another name for the servers, and there may be another number of them.
#[tokio::test]
async fn somebody_elses_sentinels_are_asked_for_what_they_watch() {
    let (env, _operator) = TestEnv::operated().await;
    let image = json!({ "image": "redis:7" });
    let group = json!({ "redisReplicationName": "shop-redis", "masterGroupName": "theirs" });
    for (kind, spec) in [
        (
            &REDIS_REPLICATION,
            json!({ "clusterSize": 3, "kubernetesConfig": image }),
        ),
        (
            &REDIS_SENTINEL,
            json!({ "clusterSize": 5, "kubernetesConfig": image, "redisSentinelConfig": group }),
        ),
    ] {
        let theirs = json!({
            "apiVersion": "redis.redis.opstreelabs.in/v1beta2", "kind": kind.kind,
            "metadata": { "name": "shop-redis" }, "spec": spec,
        });
        let params = PatchParams::apply("somebody");
        let api = env.external(kind);
        api.patch("shop-redis", &params, &Patch::Apply(&theirs))
            .await
            .unwrap();
    }
    stateful_set(&env, "shop-redis", 3, "redis:7").await;
    stateful_set(&env, "shop-redis-sentinel", 5, "redis:7").await;
    env.secret("shop-redis-auth", json!({ "pass": "theirs" })).await;
    let redis = json!({ "managed": true, "topology": "ha", "credentialsSecret": null });
    env.instance("shop", json!({ "redis": redis })).await;
    let lacks = env.shows("shop", Phase::Failed, "RedisSecretIncomplete").await;
    assert!(ready(&lacks).1.contains("password"), "{:?}", ready(&lacks));
    env.secret("shop-redis-auth", json!({ "password": "theirs" }))
        .await;
    let release = env.release("shop").await;
    assert_eq!(value(&release, "/global/redis/host"), &json!("theirs"));
    let sentinels = value(&release, "/global/redis/sentinels").as_array().unwrap();
    assert_eq!(sentinels.len(), 5, "{sentinels:?}");
}

#[tokio::test]
async fn somebody_elses_database_of_that_name_is_used_and_never_changed() {
    let env = TestEnv::new().await;
    env.create_provided_secrets().await;
    let theirs = json!({
        "apiVersion": "pgv2.percona.com/v2", "kind": "PerconaPGCluster", "metadata": { "name": "shop-pg" },
        "spec": {
            "postgresVersion": 16, "backups": { "enabled": false },
            "instances": [{ "name": "theirs", "replicas": 5, "dataVolumeClaimSpec": {
                "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } },
            }}],
        },
    });
    let api = env.external(&PERCONA);
    let params = PatchParams::apply("somebody");
    let before = api
        .patch("shop-pg", &params, &Patch::Apply(&theirs))
        .await
        .unwrap();
    let _operator = env.operator().await;
    env.instance(
        "shop",
        json!({ "postgres": { "managed": true, "credentialsSecret": null } }),
    )
    .await;
    env.shows("shop", Phase::Provisioning, "PostgresProvisioning")
        .await;
    say(&env, &PERCONA, "shop-pg", json!({ "state": "ready" })).await;
    env.secret("shop-pg-pguser-gitlab", json!({
        "host": "theirs", "port": "5432", "user": "gitlab", "password": "x", "dbname": "gitlabhq_production",
    }))
    .await;
    let release = env.release("shop").await;
    assert_eq!(value(&release, "/global/psql/host"), &json!("theirs"));
    let after = api.get("shop-pg").await.unwrap();
    assert_eq!(after.metadata.generation, before.metadata.generation);
    assert_eq!(after.data["spec"], before.data["spec"]);
}
