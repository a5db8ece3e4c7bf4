//! `stanchion crds`: the CRDs.

use std::path::PathBuf;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt as _;
use thiserror::Error;

use crate::output::{self, OutputError};
use crate::yaml;

/// Arguments of `stanchion crds`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Write one file for each CRD into this folder instead
    #[arg(long, env = "STANCHION_OUTPUT", value_name = "DIR")]
    output: Option<PathBuf>,
}

/// Why the CRDs could not be printed.
#[derive(Debug, Error)]
pub(crate) enum CrdsError {
    /// They cannot be serialized.
    #[error("cannot write the CRDs as YAML: {0}")]
    Yaml(#[from] serde_saphyr::ser::Error),
    /// They cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
}

/// Prints or writes the CRDs.
pub(crate) fn run(arguments: &Arguments) -> Result<(), CrdsError> {
    let crds = stanchion_api::crds();
    let Some(folder) = &arguments.output else {
        return Ok(output::print(&yaml::stream(&crds)?)?);
    };
    for crd in &crds {
        output::write(&folder.join(file_name(crd)), &yaml::document(crd)?)?;
    }
    Ok(())
}

/// `postgresusers.db.example.com.yaml`.
pub(crate) fn file_name(crd: &CustomResourceDefinition) -> String {
    format!("{}.yaml", crd.name_any())
}
