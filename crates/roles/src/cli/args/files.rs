//! Arguments of the commands that use files only: `render-bundle`, `fmt`.

use std::path::PathBuf;

/// `render-bundle`
#[derive(Debug, clap::Args)]
pub struct RenderBundleArgs {
    /// Path to the policy bundle YAML file
    #[arg(long)]
    pub(in crate::cli) bundle: PathBuf,
    /// Write output to this file instead of stdout
    #[arg(short, long, conflicts_with = "check")]
    pub(in crate::cli) output: Option<PathBuf>,
    /// Suppress the provenance header comment block at the top of the output
    #[arg(long)]
    pub(in crate::cli) no_header: bool,
    /// Compare the rendered output against an existing file and exit with code 2 if they differ
    #[arg(long, value_name = "PATH")]
    pub(in crate::cli) check: Option<PathBuf>,
}

/// `fmt`
#[derive(Debug, clap::Args)]
pub struct FmtArgs {
    /// Path to the policy manifest YAML file
    #[arg(short, long, default_value = "pgroles.yaml")]
    pub(in crate::cli) file: PathBuf,
    /// Only check whether the file is in the canonical form: exit with code 2 if not
    #[arg(long)]
    pub(in crate::cli) check: bool,
    /// Rewrite a file that has comments, which are lost
    #[arg(long)]
    pub(in crate::cli) drop_comments: bool,
}
