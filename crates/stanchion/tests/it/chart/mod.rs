//! The Helm chart, with a real `helm`.

#[cfg(feature = "sandbox")]
mod examples;
mod install;
mod monitoring;
mod promql;
mod render;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use stanchion_testkit::cluster::{Cluster, Kubectl};
use stanchion_testkit::{kubectl, report};

use crate::operator::text;

/// The chart.
fn chart() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../charts/stanchion")
        .canonicalize()
        .unwrap()
}

/// The program `helm`: the one that `STANCHION_HELM` names, or beside the programs of a control plane, or in `PATH`. A
/// test without it, or without kubectl, is reported as skipped.
fn helm(test: &str) -> Option<PathBuf> {
    let named = std::env::var_os("STANCHION_HELM").map(PathBuf::from);
    let assets = std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = named.or_else(|| {
        assets
            .into_iter()
            .chain(std::env::split_paths(&path))
            .map(|folder| folder.join("helm"))
            .find(|program| program.is_file())
    });
    let missing = match (&found, kubectl::find()) {
        (None, _) => "helm is neither in KUBEBUILDER_ASSETS nor on the PATH",
        (_, Err(why)) => why,
        (Some(_), Ok(_)) => return found,
    };
    report::skipped(&format!("chart::{test}"), missing);
    None
}

/// kubectl, which exists if [`helm`] was found.
fn kubectl(cluster: &Cluster) -> Kubectl {
    cluster.kubectl().unwrap()
}

/// Runs helm without leaving anything in the user's home.
fn run(helm: &Path, words: &[&str]) -> Result<String, String> {
    let home = std::env::temp_dir().join("stanchion-helm");
    let output = Command::new(helm)
        .args(words)
        .env("HELM_CACHE_HOME", home.join("cache"))
        .env("HELM_CONFIG_HOME", home.join("config"))
        .env("HELM_DATA_HOME", home.join("data"))
        .output()
        .unwrap();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(format!("helm {}: {}", words.join(" "), text(&output.stderr)))
    }
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
