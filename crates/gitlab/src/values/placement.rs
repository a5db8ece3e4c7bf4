//! Placement of the pods on nodes.
//!
//! The chart has a global node selector, but no tolerations that all its versions read: each part is configured. A part
//! without tolerations stays pending forever, and if it is a Job, so does the release.

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
    let described = |part: &str| (part.to_owned(), json!({ "tolerations": input.spec.tolerations }));
    let storage = input.chart.bundles_backends() && input.buckets.is_none();
    let mut all: Values = AT_THE_TOP
        .into_iter()
        .chain(storage.then_some("minio"))
        .map(described)
        .collect();
    all.insert(
        "gitlab".to_owned(),
        UNDER_GITLAB.into_iter().map(described).collect(),
    );
    all.into()
}
