//! Checks what the release itself needs: Flux, and object storage that the chart may not provide.

use super::super::observe::Seen;
use super::super::target::Wanted;
use super::{Course, Finding, Obstacle};
use crate::flux::{HELM_RELEASE, HELM_REPOSITORY};
use crate::values::{self, ChartVersion};

/// Whether Flux is installed.
pub(super) fn flux(seen: &Seen) -> Finding<()> {
    let missing: Vec<String> = [
        (&HELM_REPOSITORY, &seen.repository_kind),
        (&HELM_RELEASE, &seen.release_kind),
    ]
    .into_iter()
    .filter(|(_, served)| served.is_none())
    .map(|(kind, _)| kind.definition())
    .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Obstacle::failed(
        "FluxMissing",
        format!("Flux is not installed: the cluster has no {}", missing.join(", ")),
    ))
}

/// Whether there is object storage: charts from 10 on do not provide their own.
pub(super) fn stored(wanted: &Wanted, course: &Finding<Course>) -> Finding<()> {
    let given = wanted.spec.object_storage.credentials_secret.is_some()
        || values::names_object_storage(&wanted.spec.helm.values);
    let chart = course.as_ref().ok().map(|course| course.now.chart.as_str());
    match chart.filter(|chart| !given && !ChartVersion::of(chart).bundles_minio()) {
        None => Ok(()),
        Some(chart) => Err(Obstacle::failed(
            "ObjectStorageMissing",
            format!("chart {chart} brings no object storage: set objectStorage.credentialsSecret"),
        )),
    }
}
