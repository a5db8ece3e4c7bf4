//! `stanchion report FILE.zip`: collects what a maintainer needs to help, without secrets.
//!
//! It never reads Secrets and `ConfigMap`s. From everything else, it keeps only what is known to be harmless: see
//! [`redact`].

mod collect;
#[cfg(test)]
mod tests;
mod zip;

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use stanchion_fleet::redact;
use thiserror::Error;

use crate::cluster::{self, ClusterError};
use crate::output::{self, OutputError};

/// Arguments of `stanchion report`.
#[derive(Debug, clap::Args)]
#[group(id = "report")]
pub(crate) struct Arguments {
    /// File to write; it must not exist
    #[arg(value_name = "FILE.zip")]
    file: PathBuf,
    #[command(flatten)]
    cluster: cluster::Arguments,
    /// Namespace of the operator. By default all namespaces are searched
    #[arg(long, value_name = "NS")]
    operator_namespace: Option<String>,
    /// Number of log lines to include from each pod of the operator
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(0..=20_000))]
    log_lines: u32,
}

/// Why there is no report.
#[derive(Debug, Error)]
pub(crate) enum ReportError {
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error("cannot write {}: {source}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    #[error("cannot write a part of the report as JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error("cannot start: {0}")]
    System(#[from] io::Error),
}

/// A new file that nobody else can read, as long as nobody has looked through it.
fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600).open(path)
}

/// Writes the report, and lists its content.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, ReportError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let path = &arguments.file;
    let at_file = |source| ReportError::File {
        path: path.clone(),
        source,
    };
    // First, so that a report that cannot be written fails early. An existing file is not overwritten.
    let mut file = create(path).map_err(at_file)?;
    let files = runtime.block_on(async {
        let cluster = arguments.cluster.connect().await?;
        Box::pin(collect::collect(
            &cluster,
            arguments.operator_namespace.as_deref(),
            arguments.log_lines,
        ))
        .await
    });
    let files = files.inspect_err(|_| drop(std::fs::remove_file(path)))?;
    zip::write(&mut file, &files).map_err(at_file)?;
    let mut said = format!("{} has {} files:\n", path.display(), files.len());
    for (name, content) in &files {
        let _ = writeln!(said, "  {name} ({} bytes)", content.len());
    }
    said.push_str("Secrets and ConfigMaps were not read, and values are blanked out. Look through it before you share it.\n");
    output::print(&said)?;
    Ok(ExitCode::SUCCESS)
}
