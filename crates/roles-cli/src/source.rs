//! Reads manifests and bundles.

use std::path::{Path, PathBuf};

use super::args::SourceArgs;
use super::console::Console;
use super::{Failure, While as _};
use stanchion_roles::expand::{Desired, expand};
use stanchion_roles::manifest::{
    BundleSource, Composed, Diagnostic, Invalid, Manifest, Strictness, compose, load, load_bundle,
    load_document,
};

/// A manifest, or a bundle composed into one.
pub(super) struct Source {
    pub(super) manifest: Manifest,
    /// The bytes that were read: the manifest, or the composed bundle.
    pub(super) policy: Vec<u8>,
    pub(super) desired: Desired,
    pub(super) bundle: Option<LoadedBundle>,
}

/// A bundle and its documents.
pub(super) struct LoadedBundle {
    pub(super) composed: Composed,
    pub(super) sources: Vec<BundleSource>,
    pub(super) shared_profiles: usize,
}

impl Source {
    /// Reads the manifest or the bundle that the arguments name.
    pub(super) fn read(
        args: &SourceArgs,
        strictness: Strictness,
        console: &mut Console<'_>,
    ) -> Result<Self, Failure> {
        if let Some(path) = &args.bundle {
            let bundle = LoadedBundle::read(path, strictness, console)?;
            let desired = bundle.composed.expand();
            return Ok(Self {
                manifest: bundle.composed.manifest.clone(),
                policy: serde_json::to_vec(&bundle.composed.manifest).doing("failed to write the bundle")?,
                desired,
                bundle: Some(bundle),
            });
        }
        let path = args.file.clone().unwrap_or_else(|| PathBuf::from("pgroles.yaml"));
        let text = std::fs::read_to_string(&path)
            .doing(format_args!("failed to read manifest file {}", path.display()))?;
        let loaded = load(&text, strictness).map_err(|invalid| at(&path, &invalid))?;
        warn(&path, &loaded.warnings, console);
        let desired = expand(&loaded.value);
        Ok(Self {
            manifest: loaded.value,
            policy: text.into_bytes(),
            desired,
            bundle: None,
        })
    }
}

impl LoadedBundle {
    pub(super) fn read(
        path: &Path,
        strictness: Strictness,
        console: &mut Console<'_>,
    ) -> Result<Self, Failure> {
        let text = std::fs::read_to_string(path)
            .doing(format_args!("failed to read bundle file {}", path.display()))?;
        let bundle = load_bundle(&text, strictness).map_err(|invalid| at(path, &invalid))?;
        warn(path, &bundle.warnings, console);
        let mut sources = vec![];
        for source in &bundle.value.sources {
            let file = path.parent().unwrap_or(Path::new(".")).join(&source.file);
            let text = std::fs::read_to_string(&file)
                .doing(format_args!("failed to read policy document {}", file.display()))?;
            let document = load_document(&text, strictness).map_err(|invalid| at(&file, &invalid))?;
            warn(&file, &document.warnings, console);
            sources.push(BundleSource {
                file: source.file.clone(),
                document: document.value,
            });
        }
        let composed = compose(&bundle.value, &sources, strictness).map_err(|invalid| at(path, &invalid))?;
        warn(path, &composed.warnings, console);
        Ok(Self {
            composed,
            sources,
            shared_profiles: bundle.value.shared.profiles.len(),
        })
    }
}

/// `pgroles.yaml:3:5: …`, one line for each finding.
fn at(path: &Path, invalid: &Invalid) -> Failure {
    Failure::new(
        invalid
            .diagnostics
            .iter()
            .map(|finding| format!("{}:{finding}", path.display()))
            .collect::<Vec<_>>()
            .join("\n"),
    )
}

fn warn(path: &Path, warnings: &[Diagnostic], console: &mut Console<'_>) {
    for warning in warnings {
        console.warn(&format!("{}:{warning}", path.display()));
    }
}
