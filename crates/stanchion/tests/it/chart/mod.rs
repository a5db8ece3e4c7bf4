//! The Helm chart, with a real `helm`.

#[cfg(feature = "sandbox")]
mod examples;
mod install;
mod monitoring;
mod promql;
mod releases;
mod render;
mod values;
mod workload;

use std::path::{Path, PathBuf};

use serde_json::Value;
use stanchion_testkit::cluster::{Cluster, Kubectl};
use stanchion_testkit::helm::{self, run};
use stanchion_testkit::{kubectl, report};

/// The chart.
fn chart() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../charts/stanchion")
        .canonicalize()
        .unwrap()
}

/// The program `helm`. A test without it, or without kubectl, is reported as skipped.
fn helm(test: &str) -> Option<PathBuf> {
    let found = helm::find().and_then(|program| kubectl::find().map(|_| program));
    found
        .map_err(|missing| report::skipped(&format!("chart::{test}"), missing))
        .ok()
}

/// kubectl, which exists if [`helm`] was found.
fn kubectl(cluster: &Cluster) -> Kubectl {
    cluster.kubectl().unwrap()
}

/// The objects that the chart renders with these settings, in the namespace `stanchion-system`.
fn template(helm: &Path, settings: &[&str]) -> Vec<Value> {
    let chart = chart();
    let words = [
        "template",
        "stanchion",
        chart.to_str().unwrap(),
        "-n",
        "stanchion-system",
    ];
    let rendered = run(helm, &[&words[..], settings].concat()).unwrap();
    documents(&rendered)
}

fn documents(yaml: &str) -> Vec<Value> {
    let all: Vec<Value> = serde_saphyr::from_multiple(yaml).unwrap_or_else(|error| panic!("{error}"));
    all.into_iter().filter(|document| !document.is_null()).collect()
}

fn of_kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects.iter().filter(|object| object["kind"] == kind).collect()
}

/// The examples of values, which every rendering test uses.
fn examples_of_values() -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(chart().join("ci"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(files.len() >= 6, "{files:?}");
    files
}
