//! Arguments of `diff` and `apply`.

use std::path::PathBuf;

use clap::{ArgAction, ValueEnum};

use super::{DatabaseArgs, ModeArgs, SourceArgs};

/// `diff`
#[derive(Debug, clap::Args)]
pub struct DiffArgs {
    #[command(flatten)]
    pub(in crate::cli) source: SourceArgs,
    #[command(flatten)]
    pub(in crate::cli) database: DatabaseArgs,
    /// Output format: "sql" for raw SQL, "summary" for a brief summary, "json" for machine-readable JSON, "markdown"
    /// for a review table
    #[arg(long, value_enum, default_value_t = PlanFormat::Sql)]
    pub(in crate::cli) format: PlanFormat,
    #[command(flatten)]
    pub(in crate::cli) mode: ModeArgs,
    /// Exit with code 2 when drift is detected (the default)
    #[arg(long, overrides_with = "no_exit_code", action = ArgAction::SetTrue)]
    pub(in crate::cli) exit_code: bool,
    /// Exit with code 0 when drift is detected
    #[arg(long)]
    pub(in crate::cli) no_exit_code: bool,
    /// Write the plan to a file, for `apply --plan`
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) save_plan: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) review: ReviewArgs,
}

/// The plan as a file without secrets.
#[derive(Debug, clap::Args)]
pub struct ReviewArgs {
    /// Write a sanitized, review-only plan artifact to this file
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) review_out: Option<PathBuf>,
    /// Human-readable target label recorded in the review artifact
    #[arg(long, requires = "review_out")]
    pub(in crate::cli) target_label: Option<String>,
    /// Policy source revision recorded in the review artifact
    #[arg(long, requires = "review_out")]
    pub(in crate::cli) policy_commit: Option<String>,
    /// Intended executor role recorded in the review artifact; the checks use the authority of the connected role
    #[arg(long, requires = "review_out")]
    pub(in crate::cli) executor_role: Option<String>,
}

/// Formats of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum PlanFormat {
    Sql,
    Summary,
    Json,
    Markdown,
}

/// `apply`
#[derive(Debug, clap::Args)]
pub struct ApplyArgs {
    #[command(flatten)]
    pub(in crate::cli) source: SourceArgs,
    #[command(flatten)]
    pub(in crate::cli) database: DatabaseArgs,
    /// Print the SQL that would be executed without actually running it
    #[arg(long)]
    pub(in crate::cli) dry_run: bool,
    #[command(flatten)]
    pub(in crate::cli) mode: ModeArgs,
    /// Apply a plan that `diff --save-plan` wrote, if it still matches the database
    #[arg(long, value_name = "FILE", conflicts_with_all = ["file", "bundle", "mode", "allow_schema_owner_transfers"])]
    pub(in crate::cli) plan: Option<PathBuf>,
}
