//! Which version of GitLab a chart installs.

use stanchion_api::gitlab::{GitlabVersionMapSpec, Values};

use super::resolve::by_chart;
use super::{Step, Version};
use crate::flux::Running;
use crate::values::ChartVersion;

/// A chart that the map does not have. Charts are nine major versions behind GitLab; nothing else is guessed.
pub(crate) fn unmapped(chart: &str) -> Step {
    let number = ChartVersion::of(chart);
    Step {
        version: Version::new(number.major.saturating_add(9), number.minor, 0),
        chart: chart.to_owned(),
        values: Values::new(),
    }
}

/// The version that a chart installs, at least as far as its minor version; `None` for a range of charts.
pub(crate) fn installed_by(map: Option<&GitlabVersionMapSpec>, chart: &str) -> Option<Version> {
    let mapped = map.and_then(|map| by_chart(map, chart));
    let estimate = (!ChartVersion::is_open(chart)).then(|| unmapped(chart));
    mapped.or(estimate).map(|step| step.version)
}

/// The version that runs, if Flux, Helm or the map knows it.
pub(crate) fn version_of(running: &Running, map: Option<&GitlabVersionMapSpec>) -> Option<Version> {
    running
        .version
        .or_else(|| by_chart(map?, &running.chart).map(|step| step.version))
}
