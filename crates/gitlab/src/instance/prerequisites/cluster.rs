//! Checks what the release itself needs: Flux, and object storage that the chart may not provide.

use super::super::observe::Current;
use super::super::target::Wanted;
use super::{Blocker, Check, UpgradePlan};
use crate::flux::{HELM_RELEASE, HELM_REPOSITORY};
use crate::values::{self, ChartVersion};

/// Whether Flux is installed.
pub(super) fn flux(current: &Current) -> Check<()> {
    let missing: Vec<String> = [
        (&HELM_REPOSITORY, &current.repository_kind),
        (&HELM_RELEASE, &current.release_kind),
    ]
    .into_iter()
    .filter(|(_, served)| served.is_none())
    .map(|(kind, _)| kind.definition())
    .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Blocker::failed(
        "FluxMissing",
        format!("Flux is not installed: the cluster has no {}", missing.join(", ")),
    ))
}

/// Whether there is object storage: charts from 10 on do not provide their own.
pub(super) fn stored(wanted: &Wanted, upgrade: &Check<UpgradePlan>) -> Check<()> {
    let given = wanted.spec.object_storage.credentials_secret.is_some()
        || values::names_object_storage(&wanted.spec.helm.values);
    let chart = upgrade.as_ref().ok().map(|upgrade| upgrade.now.chart.as_str());
    match chart.filter(|chart| !given && !ChartVersion::of(chart).bundles_minio()) {
        None => Ok(()),
        Some(chart) => Err(Blocker::failed(
            "ObjectStorageMissing",
            format!("chart {chart} brings no object storage: set objectStorage.credentialsSecret"),
        )),
    }
}
