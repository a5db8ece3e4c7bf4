//! The CRDs of third-party kinds: the originals if available, otherwise stand-ins.

use std::collections::BTreeMap;
use std::path::Path;
use std::{env, fs};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt as _;
use stanchion_sandbox::fake_operators::DEFINITIONS;

/// Names a directory with the CRDs that the other operators publish, as YAML.
const VARIABLE: &str = "STANCHION_THIRD_PARTY_CRDS";

/// Whether [`best`] returns the originals.
pub(crate) fn are_originals() -> bool {
    env::var_os(VARIABLE).is_some()
}

/// The originals if available, otherwise stand-ins. Tests that share a cluster all use these.
pub(crate) fn best() -> Vec<CustomResourceDefinition> {
    match env::var_os(VARIABLE) {
        Some(directory) => originals(Path::new(&directory)),
        None => stand_ins(),
    }
}

pub(crate) fn stand_ins() -> Vec<CustomResourceDefinition> {
    DEFINITIONS.iter().flat_map(|text| documents(text)).collect()
}

/// All CRDs of a directory; of several for the same kind, the one of the last file.
fn originals(directory: &Path) -> Vec<CustomResourceDefinition> {
    let files = fs::read_dir(directory)
        .unwrap_or_else(|error| panic!("{VARIABLE}: {}: {error}", directory.display()));
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    let texts = files.iter().map(|file| fs::read_to_string(file).unwrap());
    let definitions: Vec<_> = texts.flat_map(|text| documents(&text)).collect();
    let newest: BTreeMap<_, _> = definitions.into_iter().map(|crd| (crd.name_any(), crd)).collect();
    newest.into_values().collect()
}

fn documents(text: &str) -> Vec<CustomResourceDefinition> {
    serde_saphyr::from_multiple(text).unwrap()
}
