//! Finds the programs of a control plane.

use std::{
    env,
    path::{Path, PathBuf},
};

use stanchion_local::kubectl;

use crate::{cache, error::Error};

/// The folder with the programs, as in envtest.
const VARIABLE: &str = "KUBEBUILDER_ASSETS";

/// The programs of a control plane.
const PROGRAMS: [&str; 6] = [
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kwok",
    "kubectl",
];

/// The folder that contains all of them: `$KUBEBUILDER_ASSETS` (the convention of envtest), or the output of `make
/// control-plane`.
pub(super) fn directory() -> Result<PathBuf, Error> {
    let folders = kubectl::control_planes();
    if let Some(whole) = folders.iter().find(|folder| missing(folder).is_none()) {
        return Ok(whole.clone());
    }
    if let (Some(given), Some(folder)) = (env::var_os(VARIABLE), folders.first())
        && !given.is_empty()
        && let Some(program) = missing(folder)
    {
        return Err(Error::Missing {
            what: format!("{program} in {VARIABLE}={}", folder.display()),
            remedy: "unset it and run `make control-plane`, or point it to a complete folder".to_owned(),
        });
    }
    let base = cache::of_user().unwrap_or_default().join("control-plane");
    Err(Error::Missing {
        what: format!("a Kubernetes control plane in {}", base.display()),
        remedy: format!(
            "run `make control-plane`, or set {VARIABLE} to a folder with kube-apiserver, etcd and the rest"
        ),
    })
}

fn missing(folder: &Path) -> Option<&'static str> {
    PROGRAMS
        .into_iter()
        .find(|program| !folder.join(program).is_file())
}
