//! `stanchion generate`: writes the generated files of the repository, so that they always match the types. `make
//! generate` runs it, and a test fails if the files are outdated.

mod argocd;
mod chart;
mod command_line;
mod fields;
mod table;

use std::path::{Path, PathBuf};

use clap::CommandFactory as _;
use serde_json::json;
use thiserror::Error;

use crate::cli::Cli;
use crate::output::{self, OutputError};
use crate::{crds, manifest, rbac, yaml};

/// Arguments of `stanchion generate`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The root of the repository
    #[arg(value_name = "DIR")]
    root: PathBuf,
}

/// Why the files could not be generated.
#[derive(Debug, Error)]
pub(crate) enum GenerateError {
    /// A CRD cannot be serialized.
    #[error("cannot write a CRD as YAML: {0}")]
    Yaml(#[from] serde_saphyr::ser::Error),
    /// The RBAC manifests cannot be rendered.
    #[error(transparent)]
    Rbac(#[from] rbac::RbacError),
    /// The manifests of the operator cannot be rendered.
    #[error(transparent)]
    Manifest(#[from] manifest::ManifestError),
    /// A file cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
}

/// Writes all of them.
pub(crate) fn run(arguments: &Arguments) -> Result<(), GenerateError> {
    for (path, text) in files()? {
        output::write(&arguments.root.join(path), &text)?;
    }
    Ok(())
}

/// Every file: its path below the root, and its content.
fn files() -> Result<Vec<(PathBuf, String)>, GenerateError> {
    let (deploy, reference) = (Path::new("deploy"), Path::new("docs/reference"));
    let mut files = vec![
        (deploy.join("operator.yaml"), manifest::everything()?),
        (deploy.join("rbac.yaml"), rbac::everything()?),
        (
            reference.join("command-line.md"),
            command_line::page(&Cli::command()),
        ),
    ];
    let mut resources = vec!["operator.yaml".to_owned(), "rbac.yaml".to_owned()];
    for crd in stanchion_api::crds() {
        resources.push(format!("crds/{}", crds::file_name(&crd)));
        files.push((
            deploy.join("crds").join(crds::file_name(&crd)),
            yaml::document(&crd)?,
        ));
        let page = format!("{}.md", crd.spec.names.kind.to_lowercase());
        files.push((reference.join(page), fields::page(&crd)));
    }
    // For `kubectl apply -k deploy`, and as a base with another image.
    let kustomization = json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": resources,
    });
    files.push((deploy.join("kustomization.yaml"), yaml::document(&kustomization)?));
    files.extend(argocd::files().map(|(name, text)| (deploy.join("argocd").join(name), text)));
    files.extend(chart::files(Path::new("charts/stanchion"))?);
    Ok(files)
}
