//! The names at `/metrics` are an interface: dashboards and alerts depend on them.

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use stanchion_kernel::telemetry::{Metrics, metrics::Finish};
use stanchion_postgres::{ConnectionConfig, PoolSettings, Pools, StatementObserver as _, Statements};

use super::scrape::Scrape;

#[test]
fn a_controllers_metrics_have_controller_runtimes_names() {
    let metrics = Metrics::new("1.2.3");
    let user = metrics.controller("user");
    user.set_max_concurrent(8);
    let waits = user.queued();
    user.queued().started().finish(Finish::Success);
    user.queued().started().finish(Finish::Requeue);
    user.queued().started().finish(Finish::RequeueAfter);
    user.queued().started().finish(Finish::Error);
    user.retried();
    user.queued().started().finish(Finish::Terminal);
    user.queued().started().finish(Finish::Panic);
    let runs = user.queued().started();

    let scrape = Scrape::parse(&metrics.encode());
    let expected = [
        (
            r#"controller_runtime_reconcile_total{controller="user",result="success"}"#,
            1,
        ),
        (
            r#"controller_runtime_reconcile_total{controller="user",result="requeue"}"#,
            1,
        ),
        (
            r#"controller_runtime_reconcile_total{controller="user",result="requeue_after"}"#,
            1,
        ),
        (
            r#"controller_runtime_reconcile_total{controller="user",result="error"}"#,
            3,
        ),
        (
            r#"controller_runtime_reconcile_errors_total{controller="user"}"#,
            3,
        ),
        (
            r#"controller_runtime_terminal_reconcile_errors_total{controller="user"}"#,
            1,
        ),
        (
            r#"controller_runtime_reconcile_panics_total{controller="user"}"#,
            1,
        ),
        (
            r#"controller_runtime_reconcile_time_seconds_count{controller="user"}"#,
            6,
        ),
        (
            r#"controller_runtime_max_concurrent_reconciles{controller="user"}"#,
            8,
        ),
        (r#"controller_runtime_active_workers{controller="user"}"#, 1),
        (r#"workqueue_depth{name="user",controller="user"}"#, 1),
        (r#"workqueue_adds_total{name="user",controller="user"}"#, 8),
        (r#"workqueue_retries_total{name="user",controller="user"}"#, 1),
        (
            r#"workqueue_queue_duration_seconds_count{name="user",controller="user"}"#,
            7,
        ),
        (r#"stanchion_build_info{version="1.2.3"}"#, 1),
    ];
    for (series, value) in expected {
        assert_eq!(scrape.count(series), value, "{series}");
    }
    assert_eq!(scrape.kind("controller_runtime_reconcile"), "counter");
    assert_eq!(
        scrape.kind("controller_runtime_reconcile_time_seconds"),
        "histogram"
    );
    assert_eq!(scrape.kind("workqueue_depth"), "gauge");
    drop((waits, runs));
}

#[test]
fn a_controllers_series_exist_before_its_first_reconcile() {
    let metrics = Metrics::new("1");
    metrics.controller("gitlab");
    let scrape = Scrape::parse(&metrics.encode());
    for result in ["success", "error", "requeue", "requeue_after"] {
        let series =
            format!(r#"controller_runtime_reconcile_total{{controller="gitlab",result="{result}"}}"#);
        assert_eq!(scrape.count(&series), 0, "an alert on rate() needs the zero");
    }
}

/// An alert relies on the name and the label.
#[tokio::test]
async fn a_server_that_refuses_connections_is_reported() {
    let metrics = Metrics::new("1");
    let pools = Pools::new(PoolSettings::default(), Arc::new(metrics.postgres().clone()));
    metrics.count_connections(pools.clone());
    let port = stanchion_testkit::port::free();
    let series = format!(r#"stanchion_postgres_circuit_open{{server="127.0.0.1:{port}"}}"#);
    assert!(!metrics.encode().contains(&series));
    let server = ConnectionConfig::new("127.0.0.1", port, "d", "u").unwrap();
    assert!(pools.get(&server).await.is_err());
    assert_eq!(Scrape::parse(&metrics.encode()).count(&series), 1);
}

#[test]
fn problems_leader_and_database_are_reported() {
    let metrics = Metrics::new("1");
    let user = metrics.controller("user");
    user.outcome(None, "Ready");
    user.outcome(Some("human"), "PrivilegeMissing");
    user.moved(None, Some("human"));
    metrics.set_leader("stanchion", true);
    for (reading, count) in [(true, 3), (false, 2)] {
        metrics.postgres().observe(&Statements {
            server: "db:5432",
            database: "app",
            reading,
            count,
            elapsed: Duration::ZERO,
            succeeded: true,
            answered: true,
        });
    }
    let observer = Arc::new(metrics.postgres().clone());
    metrics.count_connections(Pools::new(PoolSettings::default(), observer));

    let scrape = Scrape::parse(&metrics.encode());
    let expected = [
        (
            r#"stanchion_reconcile_outcome_total{controller="user",class="none",reason="Ready"}"#,
            1,
        ),
        (
            r#"stanchion_reconcile_outcome_total{controller="user",class="human",reason="PrivilegeMissing"}"#,
            1,
        ),
        (r#"stanchion_problems{controller="user",class="human"}"#, 1),
        (r#"leader_election_master_status{name="stanchion"}"#, 1),
        (r#"stanchion_postgres_statements_total{kind="read"}"#, 3),
        (r#"stanchion_postgres_statements_total{kind="write"}"#, 2),
        (r#"stanchion_postgres_connections{state="idle"}"#, 0),
        (r#"stanchion_postgres_connections{state="active"}"#, 0),
    ];
    for (series, value) in expected {
        assert_eq!(scrape.count(series), value, "{series}");
    }
    metrics.set_leader("stanchion", false);
    assert_eq!(
        Scrape::parse(&metrics.encode()).count(r#"leader_election_master_status{name="stanchion"}"#),
        0
    );
}

#[test]
fn the_process_reports_its_memory_and_cpu() {
    let scrape = Scrape::parse(&Metrics::new("1").encode());
    assert!(scrape.value("process_resident_memory_bytes") > 1024.0 * 1024.0);
    assert!(scrape.value("process_cpu_seconds_total") >= 0.0);
    assert_eq!(scrape.kind("process_cpu_seconds"), "counter");
}

#[test]
fn a_controller_adds_families_of_its_own() {
    let metrics = Metrics::new("1");
    let changes = metrics.register(|registry| {
        let changes = Counter::<u64>::default();
        registry.register(
            "pgroles_plan_changes",
            "Changes that a plan holds",
            changes.clone(),
        );
        changes
    });
    changes.inc_by(7);
    assert_eq!(
        Scrape::parse(&metrics.clone().encode()).count("pgroles_plan_changes_total"),
        7
    );
}

#[test]
fn two_operators_in_one_process_do_not_share_metrics() {
    let (one, two) = (Metrics::new("1"), Metrics::new("1"));
    one.controller("user").started().finish(Finish::Success);
    two.controller("user");
    let series = r#"controller_runtime_reconcile_total{controller="user",result="success"}"#;
    assert_eq!(Scrape::parse(&one.encode()).count(series), 1);
    assert_eq!(Scrape::parse(&two.encode()).count(series), 0);
}
