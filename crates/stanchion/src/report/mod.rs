//! `stanchion report FILE.zip`: what a maintainer needs to help, without what nobody else should see.
//!
//! Secrets and `ConfigMap`s are never read. Of everything else, only what is known to be harmless is kept: see [`redact`].

mod collect;
mod redact;
#[cfg(test)]
mod tests;
mod zip;

use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use thiserror::Error;

use crate::cluster::{self, ClusterError};
use crate::output::{self, OutputError};

/// Arguments of `stanchion report`.
#[derive(Debug, clap::Args)]
#[group(id = "report")]
pub(crate) struct Arguments {
    /// The file to write; it must not exist
    #[arg(value_name = "FILE.zip")]
    file: PathBuf,
    #[command(flatten)]
    cluster: cluster::Arguments,
    /// The namespace of the operator. By default it is looked for in all namespaces
    #[arg(long, value_name = "NS")]
    operator_namespace: Option<String>,
    /// How many lines of the log of each pod of the operator are taken along
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
        /// What the system says.
        source: io::Error,
    },
    #[error("cannot write a part of the report as JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error("cannot start: {0}")]
    System(#[from] io::Error),
}

/// Writes it, and says what is in it.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, ReportError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let path = &arguments.file;
    let at_file = |source| ReportError::File {
        path: path.clone(),
        source,
    };
    // First, so that nobody waits for a report that cannot be written. A file that is there may be somebody's.
    let mut file = std::fs::File::create_new(path).map_err(at_file)?;
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
