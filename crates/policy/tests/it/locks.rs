//! One writer a database: others wait for their turn, and that is no failure.

use std::time::Duration;

use serde_json::json;
use stanchion_postgres::lock::ROLES;
use stanchion_testkit::wait;
use tokio_postgres::Client;

use super::bed::{Bed, PATIENCE, Running, condition};

/// What another process would hold while it changes roles of this database.
pub(crate) struct Held(Client);

impl Held {
    pub(crate) async fn take(bed: &Bed) -> Self {
        let session = bed.database.admin().await;
        session
            .batch_execute(&format!("SELECT pg_advisory_lock({ROLES})"))
            .await
            .unwrap();
        Self(session)
    }

    pub(crate) async fn release(self) {
        self.0
            .batch_execute(&format!("SELECT pg_advisory_unlock({ROLES})"))
            .await
            .unwrap();
    }
}

/// Waits until so many passes have found the database taken.
pub(crate) async fn contended(operator: &Running, times: u64) {
    wait::eventually(PATIENCE, "passes that found it taken", async || {
        operator.total("pgroles_lock_contention_total") >= times
    })
    .await;
}

/// Somebody else holds the lock: it is tried again soon, nothing is reported as failed, and nothing is made twice.
#[tokio::test]
async fn a_locked_database_is_waited_for() {
    let bed = Bed {
        turn: Duration::from_millis(100),
        ..Bed::new().await
    };
    let held = Held::take(&bed).await;
    let operator = bed.operator().await;
    bed.database_secret().await;
    let role = bed.role("app");
    bed.policy("waits", json!({ "interval": "1h", "roles": [{ "name": role }] }))
        .await;
    contended(&operator, 2).await;
    assert!(!bed.has_role(&role).await);
    let policy = bed.get("waits").await;
    for kind in ["Ready", "Degraded"] {
        assert_eq!(
            condition(&policy, kind),
            None,
            "nothing failed, and nothing is done"
        );
    }
    held.release().await;
    let policy = bed.ready("waits").await;
    assert_eq!(policy.status.unwrap().transient_failure_count, 0);
    assert_eq!(
        bed.plans_of("waits").await.len(),
        1,
        "the plan that waited is the one that was carried out"
    );
}

/// Nobody is overtaken for ever: with one writer at a time and a short turn, all of many get theirs.
#[tokio::test]
async fn nobody_starves_at_a_busy_database() {
    const MANY: usize = 12;
    let bed = Bed {
        turn: Duration::from_millis(50),
        ..Bed::new().await
    };
    let _operator = bed.operator().await;
    bed.database_secret().await;
    let name = |n: usize| format!("many-{n}");
    for n in 0..MANY {
        let spec = json!({ "interval": "1h", "roles": [{ "name": bed.role(&format!("r{n}")) }] });
        bed.policy(&name(n), spec).await;
    }
    for n in 0..MANY {
        bed.ready(&name(n)).await;
    }
}
