//! The command line arguments.
//!
//! The doc comments are the help texts; clap does not render Markdown.
#![allow(clippy::doc_markdown)]

mod cluster;
mod common;
mod files;
mod looks;
mod plans;

use clap::Subcommand;

pub use cluster::{Policy, ReconcileArgs};
pub use common::{Auth, DatabaseArgs, ModeArgs, ModeName, SourceArgs};
pub use files::{FmtArgs, RenderBundleArgs};
pub use looks::{GenerateArgs, GraphArgs, GraphCommand, GraphFormat, GraphOutput, GraphScope, InspectArgs};
pub use plans::{ApplyArgs, DiffArgs, PlanFormat, ReviewArgs};

/// Access control as code.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Accept what pgroles accepted: unknown keys, undeclared grantees and impossible privileges become warnings
    #[arg(
        long,
        global = true,
        env = "STANCHION_ROLES_LENIENT",
        conflicts_with = "strict"
    )]
    pub(in crate::cli) lenient: bool,
    /// Refuse them (the default, except for `pgroles`)
    #[arg(long, global = true)]
    pub(in crate::cli) strict: bool,
    #[command(subcommand)]
    pub(in crate::cli) command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Validate a manifest or bundle file. No database connection required
    Validate(SourceArgs),
    /// Show the SQL changes needed to converge the database to the manifest. Alias: plan
    #[command(visible_alias = "plan")]
    Diff(DiffArgs),
    /// Apply the changes to bring the database in sync with the manifest
    Apply(ApplyArgs),
    /// Inspect the current database state for roles and privileges
    Inspect(InspectArgs),
    /// Generate a manifest YAML from the current database state (brownfield adoption)
    Generate(GenerateArgs),
    /// Visualize the role graph structure
    Graph(GraphArgs),
    /// Render a bundle as one manifest
    RenderBundle(RenderBundleArgs),
    /// Request a reconcile of a PostgresPolicy from the operator, and wait for the result
    Reconcile(ReconcileArgs),
    /// Rewrite a manifest in the canonical form
    Fmt(FmtArgs),
    /// Print the JSON schema of the manifest
    Schema,
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}
