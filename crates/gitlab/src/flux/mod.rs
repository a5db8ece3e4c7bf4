//! What Flux is told, and what it says: a `HelmRepository` and a `HelmRelease`.
//!
//! Flux is of any age: older ones serve other versions, and know nothing of how to retry without rolling back.

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

/// Where charts are.
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
