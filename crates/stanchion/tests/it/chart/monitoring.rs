//! Alerts and the dashboard use existing metrics, and each alert has a runbook.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};
use stanchion_testkit::cluster::Cluster;

use super::{chart, documents, promql};
use crate::operator::Operator;

fn alerts() -> Vec<Value> {
    let text = std::fs::read_to_string(chart().join("files/alerts.yaml")).unwrap();
    documents(&text)[0].as_array().unwrap().clone()
}

#[test]
fn every_alert_has_its_page_and_every_page_its_alert() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/runbooks");
    let mut pages: BTreeSet<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| name != "README.md")
        .collect();
    for alert in alerts() {
        let name = alert["alert"].as_str().unwrap();
        let page = format!("{}.md", name.to_lowercase());
        let text =
            std::fs::read_to_string(folder.join(&page)).unwrap_or_else(|error| panic!("{page}: {error}"));
        assert!(text.starts_with(&format!("# {name}\n")), "{page}");
        for part in ["## What it means", "## What to do"] {
            assert!(text.contains(part), "{page}: {part}");
        }
        assert!(pages.remove(&page));
        let severity = alert["labels"]["severity"].as_str().unwrap();
        assert!(["critical", "warning", "info"].contains(&severity), "{name}");
    }
    assert!(pages.is_empty(), "no alert has these pages: {pages:?}");
}

/// The names of metrics in a `PromQL` expression: words followed by a selector.
fn metrics(expression: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (at, _) in expression.match_indices('{') {
        let before = &expression[..at];
        let start = before
            .rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .map_or(0, |at| at + 1);
        if start < at {
            names.insert(before[start..].to_owned());
        }
    }
    names
}

/// An operator with all controllers exports every metric that an alert or a panel uses.
#[tokio::test]
async fn alerts_and_panels_ask_for_metrics_that_exist() {
    let mut expressions: Vec<String> = alerts()
        .iter()
        .map(|alert| alert["expr"].as_str().unwrap().to_owned())
        .collect();
    let dashboard = std::fs::read_to_string(chart().join("files/dashboard.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&dashboard).unwrap();
    for panel in dashboard["panels"].as_array().unwrap() {
        let targets = panel["targets"].as_array().into_iter().flatten();
        expressions.extend(targets.map(|target| target["expr"].as_str().unwrap().to_owned()));
    }
    for expression in &expressions {
        let read = promql::read(expression);
        assert_eq!(read, Ok(promql::Value::Instant), "{expression}");
    }
    let asked: BTreeSet<String> = expressions
        .iter()
        .flat_map(|expression| metrics(expression))
        .collect();
    assert!(asked.len() > 20, "{asked:?}");

    let cluster = Cluster::shared().await;
    cluster.install_crds(stanchion_api::crds()).await;
    let namespace = cluster.namespace("metrics").await;
    let scope = [
        "--namespace",
        &namespace,
        "--operator-namespace",
        &namespace,
        "--no-webhooks",
        "--leader-elect",
    ];
    let operator = Operator::start(&cluster.kubeconfig_path(), &scope);
    operator.ready().await;
    // Results and problems are exported from the first one on: this user's database does not exist.
    let user = json!({
        "apiVersion": "db.example.com/v1alpha1", "kind": "PostgresUser", "metadata": { "name": "homeless" },
        "spec": { "username": "homeless", "database": "none", "privileges": ["CONNECT"], "password": { "generate": {} } },
    });
    cluster.apply(&user.to_string(), &namespace).await;
    operator
        .wait_for("a problem", async || {
            let reported = operator.get("metrics", "/metrics").await.unwrap_or_default().1;
            reported.contains("stanchion_problems{")
                && reported.contains("stanchion_reconcile_outcome_total{")
        })
        .await;
    let (_, reported) = operator.get("metrics", "/metrics").await.unwrap();
    operator.stop().await;
    let types: BTreeSet<(&str, &str)> = reported
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '))
        .collect();
    let is_told = |name: &str| {
        let is = |name: &str, kind: &str| types.contains(&(name, kind));
        // `up` is Prometheus' own.
        name == "up"
            || is(name, "gauge")
            || name
                .strip_suffix("_total")
                .is_some_and(|name| is(name, "counter"))
            || name
                .strip_suffix("_bucket")
                .is_some_and(|name| is(name, "histogram"))
            || name.strip_suffix("_info").is_some_and(|name| is(name, "info"))
    };
    let missing: Vec<&String> = asked.iter().filter(|name| !is_told(name)).collect();
    assert!(missing.is_empty(), "{missing:?} are not among {types:?}");
}
