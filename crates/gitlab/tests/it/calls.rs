//! The API calls of an instance from its creation to `Ready`: with managed backends it reads and writes more objects, and
//! waits for more changes.

use serde_json::{Value, json};
use stanchion_api::gitlab::Phase;
use stanchion_gitlab::backends::kinds::PERCONA;
use stanchion_testkit::cluster::Request;
use stanchion_testkit::faults::Faults;

use crate::managed::{say, stateful_set};
use crate::test_env::{TestEnv, ready};

/// The calls of an instance with this spec; `provide` is what the other operators do before Flux.
async fn calls_until_ready(spec: Value, provide: impl AsyncFnOnce(&TestEnv)) -> Vec<Request> {
    let env = TestEnv::new().await;
    let account = env
        .cluster
        .user(&env.namespace, "counted", &crate::rbac::grants(&env))
        .await;
    let audit = env.cluster.audit();
    env.create_provided_secrets().await;
    let _operator = env.operator_as(account.config().await, &Faults::new()).await;
    env.instance("shop", spec).await;
    provide(&env).await;
    env.release("shop").await;
    env.phase("shop", Phase::Deploying).await;
    // Like Flux, which reports its progress several times.
    for words in [
        "Fulfilling prerequisites",
        "Running 'install' action with timeout of 45m0s",
    ] {
        env.works("shop", words).await;
        env.until("shop", |instance| ready(instance).1.contains(words))
            .await;
    }
    env.installed("shop", "17.11.7").await;
    env.phase("shop", Phase::Ready).await;
    let requests = audit.requests().await.of_user(account.name());
    // Without requests of the process for all instances: watches and discovery.
    let is_ours = |request: &&Request| request.verb != "watch" && !request.resource.is_empty();
    requests.list().iter().filter(is_ours).cloned().collect()
}

fn secrets(calls: &[Request]) -> usize {
    let reads = calls.iter().filter(|call| call.verb == "get");
    reads.filter(|call| call.resource == "secrets").count()
}

#[tokio::test]
async fn an_instance_takes_at_most_forty_calls() {
    let calls = calls_until_ready(json!({}), async |_| {}).await;
    assert!(calls.len() <= 40, "{} calls: {calls:#?}", calls.len());
    assert!(secrets(&calls) <= 8, "{} reads of Secrets", secrets(&calls));
}

#[tokio::test]
async fn an_instance_with_managed_backends_takes_at_most_ninety_calls() {
    let managed = json!({ "managed": true, "credentialsSecret": null });
    let calls = calls_until_ready(json!({ "postgres": managed, "redis": managed }), async |env| {
        env.shows("shop", Phase::Provisioning, "PostgresProvisioning")
            .await;
        say(env, &PERCONA, "shop-pg", json!({ "state": "initializing" })).await;
        env.until("shop", |instance| ready(instance).1.contains("initializing"))
            .await;
        env.secret(
            "shop-pg-pguser-gitlab",
            json!({
                "host": "shop-pg-primary.gl.svc", "port": "5432", "user": "gitlab", "password": "x",
                "dbname": "gitlabhq_production",
            }),
        )
        .await;
        say(env, &PERCONA, "shop-pg", json!({ "state": "ready" })).await;
        env.shows("shop", Phase::Provisioning, "RedisProvisioning").await;
        stateful_set(env, "shop-redis", 1, "redis:7").await;
    })
    .await;
    assert!(calls.len() <= 90, "{} calls: {calls:#?}", calls.len());
}
