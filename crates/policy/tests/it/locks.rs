//! One writer for each database: others wait for their turn, which is not a failure.

use std::time::Duration;

use serde_json::json;
use stanchion_postgres::lock::ROLES;
use stanchion_testkit::wait;
use tokio_postgres::Client;

use super::test_env::{Running, TestEnv, WAIT_TIMEOUT};

/// The lock as another process holds it while it changes roles of this database.
pub(crate) struct Held {
    _session: Client,
}

impl Held {
    pub(crate) async fn take(env: &TestEnv) -> Self {
        let session = env.database.admin().await;
        session
            .batch_execute(&format!("SELECT pg_advisory_lock({ROLES})"))
            .await
            .unwrap();
        Self { _session: session }
    }
}

/// Waits until so many reconciles have found the database locked.
pub(crate) async fn contended(operator: &Running, times: u64) {
    wait::eventually(WAIT_TIMEOUT, "passes that found it taken", async || {
        operator.total("pgroles_lock_contention_total") >= times
    })
    .await;
}

/// Every login can hold the lock: it blocks nobody, and nothing is created twice.
#[tokio::test]
async fn a_lock_held_by_another_session_blocks_no_policy() {
    let env = TestEnv::new().await;
    let _held = Held::take(&env).await;
    let _operator = env.operator().await;
    env.database_secret().await;
    let role = env.role("app");
    env.policy(
        "goes-on",
        json!({ "interval": "1h", "roles": [{ "name": role }] }),
    )
    .await;
    let policy = env.ready("goes-on").await;
    assert!(env.has_role(&role).await);
    assert_eq!(policy.status.unwrap().transient_failure_count, 0);
    assert_eq!(env.plans_of("goes-on").await.len(), 1);
}

/// With one writer at a time and a short turn, all of many policies get their turn.
#[tokio::test]
async fn every_policy_gets_its_turn_at_a_busy_database() {
    const MANY: usize = 12;
    let env = TestEnv {
        turn: Duration::from_millis(50),
        ..TestEnv::new().await
    };
    let _operator = env.operator().await;
    env.database_secret().await;
    let name = |n: usize| format!("many-{n}");
    for n in 0..MANY {
        let spec = json!({ "interval": "1h", "roles": [{ "name": env.role(&format!("r{n}")) }] });
        env.policy(&name(n), spec).await;
    }
    for n in 0..MANY {
        env.ready(&name(n)).await;
    }
}
