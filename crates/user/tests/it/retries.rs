//! What is retried, how often, and what is not.

use std::time::Duration;

use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use stanchion_api::PostgresInstance;
use stanchion_api::user::Phase;
use stanchion_postgres::LEFT_ALONE;
use stanchion_testkit::faults::Faults;
use stanchion_testkit::postgres::{ADMIN, ADMIN_PASSWORD};
use stanchion_testkit::proxy::Cut;
use stanchion_testkit::wait;

use super::test_env::{How, QUICK_BACKOFF, TestEnv, WAIT_TIMEOUT, any, condition, message, role_name};

/// A2, C16, C17: attempts on an unreachable server back off, with one connection each; their status writes do not cause
/// the next one; and when the server is back the object recovers.
#[tokio::test]
async fn an_unreachable_server_is_retried_with_backoff() {
    TestEnv::on_each_kind(async |env| {
        let role = role_name();
        let (proxy, admin) = env.proxy().await;
        proxy.cut(Cut::Close).await;
        let faults = Faults::new();
        let backoff = QUICK_BACKOFF;
        let _operator = env.start(How {
            admin,
            faults: faults.clone(),
            backoff,
            ..env.how().await
        });
        env.password("uma", "secret").await;
        env.user("uma", &role, json!({})).await;
        wait::eventually(WAIT_TIMEOUT, "several attempts", async || {
            proxy.seen().attempts.len() >= 7
        })
        .await;
        let attempts = proxy.seen().attempts;
        let gaps: Vec<Duration> = attempts.windows(2).map(|pair| pair[1] - pair[0]).collect();
        // The first gap may be shorter: an event of the Secret arrived while it was read.
        for (gap, failures) in gaps.iter().zip(1..).skip(1) {
            assert!(
                *gap >= backoff.delay(failures),
                "after {failures} failures: {gaps:?}"
            );
        }
        let user = env.users().get("uma").await.unwrap();
        let status = user.status.clone().unwrap();
        assert_eq!(status.phase, Some(Phase::Creating));
        assert_eq!(
            condition(&user, "DatabaseConnected"),
            Some(("False".into(), "ConnectionFailed".into()))
        );
        assert_eq!(
            status.message.unwrap(),
            format!("Cannot reach postgres at {}; {LEFT_ALONE}", proxy.address())
        );
        assert_eq!(
            message(&user, "DatabaseConnected"),
            format!(
                "Cannot reach postgres at {}; its circuit breaker is open: the operator tries one connection at a time, a few \
                 seconds apart",
                proxy.address()
            )
        );
        assert_eq!(user.metadata.finalizers.map(|all| all.len()), Some(1));
        let of_users = faults.writes();
        let of_users = of_users
            .iter()
            .filter(|call| call.target.resource == "postgresusers");
        assert_eq!(of_users.count(), 2, "the finalizer, and the status once");
        assert!(!env.has_role(&role).await);
        proxy.restore().await;
        env.ready("uma").await;
    })
    .await;
}

/// C28: a working object whose server becomes unreachable reports that in `DatabaseConnected`, with the address and
/// nothing else.
#[tokio::test]
async fn the_condition_of_the_connection_names_the_address_and_no_secret() {
    let env = TestEnv::new(any()).await;
    let role = role_name();
    let (proxy, _operator) = env.behind_a_proxy().await;
    env.password("vic", "a-password").await;
    env.user("vic", &role, json!({})).await;
    env.ready("vic").await;
    proxy.cut(Cut::Refuse).await;
    env.user("vic", &role, json!({ "role": { "connectionLimit": 3 } }))
        .await;
    let user = env
        .condition("vic", "DatabaseConnected", "False", "ConnectionFailed")
        .await;
    assert_eq!(
        message(&user, "DatabaseConnected"),
        format!("Cannot reach postgres at {}; {LEFT_ALONE}", proxy.address())
    );
    assert_eq!(
        user.status.as_ref().unwrap().phase,
        Some(Phase::Ready),
        "the role is still there"
    );
    let shown = serde_json::to_string(&user.status).unwrap();
    for secret in [ADMIN_PASSWORD, "a-password", "postgresql://"] {
        assert!(!shown.contains(secret), "{shown}");
    }
    proxy.restore().await;
    env.ready("vic").await;
}

/// C18, A20: a permanent error of PostgreSQL is tried once, and again only when the spec changes.
#[tokio::test]
async fn a_permanent_failure_is_not_retried() {
    let cases: [(&str, Value, &str); 3] = [
        (
            "guc",
            json!({ "role": { "parameters": { "no_such_setting": "1" } } }),
            "no_such_setting",
        ),
        (
            "value",
            json!({ "role": { "parameters": { "work_mem": "lots" } } }),
            "work_mem",
        ),
        (
            "extension",
            json!({ "databases": [{ "name": "HERE", "extensions": ["no_such_extension"] }] }),
            "no_such_extension",
        ),
    ];
    for (name, mut wrong, named) in cases {
        let env = TestEnv::new(any()).await;
        if let Some(database) = wrong.pointer_mut("/databases/0/name") {
            *database = json!(env.database.name());
        }
        let role = role_name();
        let operator = env.operator().await;
        env.password(name, "secret").await;
        env.user(name, &role, wrong).await;
        let user = env.condition(name, "Ready", "False", "InvalidSpec").await;
        assert_eq!(
            condition(&user, "Stalled"),
            Some(("True".into(), "InvalidSpec".into()))
        );
        let status = user.status.clone().unwrap();
        assert_eq!(status.phase, Some(Phase::Failed));
        assert!(status.message.as_ref().unwrap().contains(named), "{status:?}");
        assert!(!env.has_role(&role).await, "all or nothing");
        wait::eventually(WAIT_TIMEOUT, "the pass to end", async || operator.passes() == 1).await;
        assert_eq!(
            operator.total("workqueue_retries_total{name=\"user\""),
            0,
            "{}",
            operator.metrics_text()
        );
        env.user(name, &role, json!({})).await;
        let user = env.ready(name).await;
        assert_eq!(
            condition(&user, "Stalled").map(|found| found.0),
            Some("False".into())
        );
    }
}

/// C19: a wrong administrator password recovers with the right one, without a change of the object.
#[tokio::test]
async fn a_corrected_administrator_password_recovers_the_object() {
    let env = TestEnv::new(any()).await;
    let role = role_name();
    let operator = env.operator().await;
    let admin = async |password: &str| {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "admin" },
            "stringData": { "username": ADMIN, "password": password },
        });
        let params = PatchParams::apply("test").force();
        env.secrets()
            .patch("admin", &params, &Patch::Apply(&secret))
            .await
            .unwrap();
    };
    admin("wrong").await;
    let instance = json!({
        "apiVersion": "db.example.com/v1alpha1", "kind": "PostgresInstance", "metadata": { "name": "main" },
        "spec": {
            "host": "127.0.0.1", "port": env.database.server().port(), "adminSecretRef": { "name": "admin" },
        },
    });
    let instances: Api<PostgresInstance> = Api::namespaced(env.client.clone(), &env.namespace);
    let params = PatchParams::apply("test").force();
    instances
        .patch("main", &params, &Patch::Apply(&instance))
        .await
        .unwrap();
    env.password("will", "secret").await;
    env.user("will", &role, json!({ "instanceRef": { "name": "main" } }))
        .await;
    let user = env
        .condition("will", "DatabaseConnected", "False", "AuthenticationFailed")
        .await;
    assert!(!serde_json::to_string(&user.status).unwrap().contains("wrong"));
    admin(ADMIN_PASSWORD).await;
    let user = env.ready("will").await;
    assert_eq!(user.metadata.generation, Some(1));
    assert!(env.logs_in(&role, "secret").await);
    drop(operator);
}
