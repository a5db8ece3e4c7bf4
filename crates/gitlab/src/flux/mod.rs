//! The objects of Flux: a `HelmRepository` and a `HelmRelease`.
//!
//! All versions of Flux are supported: older ones serve other API versions, and cannot retry without a rollback.

mod objects;
mod release;

pub use objects::{Chart, helm_release, helm_repository};
pub use release::{Progress, Release, Running};

use stanchion_kernel::foreign::Foreign;

/// The release of a chart.
pub static HELM_RELEASE: Foreign = Foreign {
    group: "helm.toolkit.fluxcd.io",
    kind: "HelmRelease",
    plural: "helmreleases",
    versions: &["v2", "v2beta2", "v2beta1"],
};

/// The kind of chart repositories.
pub static HELM_REPOSITORY: Foreign = Foreign {
    group: "source.toolkit.fluxcd.io",
    kind: "HelmRepository",
    plural: "helmrepositories",
    versions: &["v1", "v1beta2", "v1beta1"],
};

/// The name of both objects of an instance.
pub fn name(instance: &str) -> String {
    format!("{instance}-gitlab")
}
