//! The objects of Flux: a `HelmRepository` and a `HelmRelease`.
//!
//! All versions of Flux are supported: older ones serve other API versions, and cannot retry without a rollback.

mod objects;
mod release;

pub(crate) use objects::{Chart, helm_release, helm_repository};
pub(crate) use release::{Failure, Progress, Release, Running};

use stanchion_kernel::external::ExternalKind;

/// The release of a chart.
pub static HELM_RELEASE: ExternalKind = ExternalKind {
    group: "helm.toolkit.fluxcd.io",
    kind: "HelmRelease",
    plural: "helmreleases",
    versions: &["v2", "v2beta2", "v2beta1"],
};

/// The kind of chart repositories.
pub static HELM_REPOSITORY: ExternalKind = ExternalKind {
    group: "source.toolkit.fluxcd.io",
    kind: "HelmRepository",
    plural: "helmrepositories",
    versions: &["v1", "v1beta2", "v1beta1"],
};

/// The name of both objects of an instance.
pub(crate) fn name(instance: &str) -> String {
    format!("{instance}-gitlab")
}
