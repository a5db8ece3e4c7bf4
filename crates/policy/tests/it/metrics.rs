//! The original's metrics, as its users' collectors expect them.

use std::time::Duration;

use serde_json::json;
use stanchion_kernel::driver::Settings;
use stanchion_kernel::telemetry::otlp::Export;
use stanchion_policy::metrics::OTLP_NAMES;
use stanchion_postgres::ConnectionConfig;
use stanchion_testkit::collector::Collector;
use stanchion_testkit::faults::Faults;
use tokio_util::sync::CancellationToken;

use super::locks::contended;
use super::test_env::{TestEnv, WAIT_TIMEOUT};

/// Every counted event happens once, and all metrics reach a collector under the original's names.
#[tokio::test]
async fn a_collector_gets_every_metric_of_the_original() {
    let env = TestEnv {
        turn: Duration::from_millis(100),
        ..TestEnv::new().await
    };
    let (operator, pools) = env.build(&Faults::new()).await;
    let operator = operator.start();
    env.database_secret().await;
    let shared = json!({ "interval": "1h", "roles": [{ "name": env.role("app") }] });
    env.policy("well", shared.clone()).await;
    env.ready("well").await;
    env.policy("rival", shared).await;
    env.condition("rival", "Conflict", "True", "ConflictingPolicy")
        .await;
    env.policy(
        "invalid",
        json!({ "schemas": [{ "name": "s", "profiles": ["no-such"] }] }),
    )
    .await;
    env.condition("invalid", "Ready", "False", "InvalidSpec").await;
    env.secret(
        "away",
        json!({ "DATABASE_URL": "postgres://nobody@127.0.0.1:1/none" }),
    )
    .await;
    env.policy(
        "lost",
        json!({ "connection": { "secretRef": { "name": "away" } } }),
    )
    .await;
    env.condition("lost", "Ready", "False", "DatabaseConnectionFailed")
        .await;
    // Another task of this process works on the database.
    let target = ConnectionConfig::parse(&env.url().into()).unwrap();
    let turn = pools.exclusive(&target, WAIT_TIMEOUT).await.unwrap();
    env.policy("waits", json!({ "roles": [{ "name": env.role("late") }] }))
        .await;
    contended(&operator, 1).await;
    drop(turn);
    env.ready("waits").await;

    let collector = Collector::start().await;
    let export = Export::new(operator.metrics.clone(), &collector.endpoint(), "1.2.3")
        .unwrap()
        .expect("no variable says otherwise");
    // An export sends a last time when it is cancelled.
    let ended = CancellationToken::new();
    ended.cancel();
    export.run(ended).await;

    for (_, name) in OTLP_NAMES {
        let total = collector
            .total(name)
            .unwrap_or_else(|| panic!("no {name} in {:?}", collector.series()));
        assert!(
            total > 0.0 || name == "pgroles.reconcile.inflight",
            "{name} was never counted"
        );
    }
    let series = collector.series();
    let has = |name: &str, attributes: &[(&str, &str)]| {
        series.iter().any(|series| {
            let mut wanted = attributes.iter();
            series.name == name
                && wanted.all(|(key, value)| series.attributes.get(*key).map(String::as_str) == Some(value))
        })
    };
    for (result, reason) in [
        ("success", "Reconciled"),
        ("error", "ConflictingPolicy"),
        ("error", "InvalidSpec"),
        ("error", "DatabaseConnectionFailed"),
        ("error", "LockContention"),
    ] {
        let attributes = [("result", result), ("reason", reason)];
        assert!(has("pgroles.reconcile.total", &attributes), "{attributes:?}");
    }
    assert!(has("pgroles.plan.total", &[("result", "drift")]));
    assert!(has("pgroles.apply.total", &[("result", "success")]));
    let unit = |name: &str| {
        series
            .iter()
            .find(|series| series.name == name)
            .map(|it| it.unit.as_str())
    };
    assert_eq!(unit("pgroles.reconcile.duration"), Some("ms"));
    let workers = Settings::default().concurrency;
    assert_eq!(
        collector.total("controller_runtime_max_concurrent_reconciles"),
        Some(f64::from(workers)),
        "and with them all others"
    );
    let sender = collector.sender();
    assert_eq!(
        (
            sender["service.name"].as_str(),
            sender["service.version"].as_str()
        ),
        ("stanchion", "1.2.3")
    );
}
