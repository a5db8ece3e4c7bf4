//! On which nodes the pods run.
//!
//! The chart has one place for the labels of nodes, but none for tolerations that all its versions read: each of its
//! parts is told. A part that is forgotten stays pending for ever, and with a Job the release with it.

use serde_json::{Value, json};

use super::merge::layered;
use super::{Input, Values};

const UNDER_GITLAB: [&str; 12] = [
    "geo-logcursor",
    "gitaly",
    "gitlab-exporter",
    "gitlab-pages",
    "gitlab-shell",
    "kas",
    "mailroom",
    "migrations",
    "praefect",
    "sidekiq",
    "toolbox",
    "webservice",
];

const AT_THE_TOP: [&str; 3] = ["registry", "shared-secrets", "upgradeCheck"];

pub(super) fn values(input: &Input<'_>) -> Value {
    let selector = &input.spec.node_selector;
    let labels = (!selector.is_empty()).then(|| json!({ "global": { "nodeSelector": selector } }));
    let tolerations = (!input.spec.tolerations.is_empty()).then(|| tolerations(input));
    layered([labels, tolerations])
}

fn tolerations(input: &Input<'_>) -> Value {
    let told = |part: &str| (part.to_owned(), json!({ "tolerations": input.spec.tolerations }));
    let storage = input.chart.bundles_backends() && input.buckets.is_none();
    let mut all: Values = AT_THE_TOP
        .into_iter()
        .chain(storage.then_some("minio"))
        .map(told)
        .collect();
    all.insert("gitlab".to_owned(), UNDER_GITLAB.into_iter().map(told).collect());
    all.into()
}
