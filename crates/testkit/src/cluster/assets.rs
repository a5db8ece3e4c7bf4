//! Finds the programs of a control plane.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use crate::{cache, error::Error};

/// What a control plane is made of.
const PROGRAMS: [&str; 6] = [
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kwok",
    "kubectl",
];

/// The folder that has them all: `$KUBEBUILDER_ASSETS` (the convention of envtest), or what
/// `make control-plane` has built.
pub(super) fn directory() -> Result<PathBuf, Error> {
    if let Some(given) = env::var_os("KUBEBUILDER_ASSETS").filter(|given| !given.is_empty()) {
        let given = PathBuf::from(given);
        return match missing(&given) {
            None => Ok(given),
            Some(program) => Err(Error::Missing {
                what: format!("{program} in KUBEBUILDER_ASSETS={}", given.display()),
                remedy: "unset it and run `make control-plane`, or point it to a complete folder".to_owned(),
            }),
        };
    }
    let base = cache::of_user().unwrap_or_default().join("control-plane");
    let versions = fs::read_dir(&base)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    versions
        .filter(|folder| missing(folder).is_none())
        .max()
        .ok_or_else(|| Error::Missing {
            what: format!("a Kubernetes control plane in {}", base.display()),
            remedy: "run `make control-plane`, or set KUBEBUILDER_ASSETS to a folder with kube-apiserver, \
                 etcd and the rest"
                .to_owned(),
        })
}

fn missing(folder: &Path) -> Option<&'static str> {
    PROGRAMS
        .into_iter()
        .find(|program| !folder.join(program).is_file())
}
