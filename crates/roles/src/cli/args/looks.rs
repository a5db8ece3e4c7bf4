//! Arguments of the commands that read a database: `inspect`, `generate`, `graph`.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

use super::{DatabaseArgs, SourceArgs};

/// `inspect`
#[derive(Debug, clap::Args)]
pub struct InspectArgs {
    /// Path to policy manifest YAML. When provided, scopes output to roles and schemas declared in the manifest. When
    /// omitted, shows all non-system database roles and privileges
    #[arg(short, long, conflicts_with = "bundle")]
    pub(in crate::cli) file: Option<PathBuf>,
    /// Path to the policy bundle YAML file. When provided, scopes output to the composed bundle ownership boundaries
    #[arg(long)]
    pub(in crate::cli) bundle: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) database: DatabaseArgs,
}

/// `generate`
#[derive(Debug, clap::Args)]
pub struct GenerateArgs {
    #[command(flatten)]
    pub(in crate::cli) database: DatabaseArgs,
    /// Write output to this file instead of stdout
    #[arg(short, long)]
    pub(in crate::cli) output: Option<PathBuf>,
    /// Refactor the generated manifest into reusable profiles where roles share an identical schema-relative privilege
    /// shape across multiple schemas. The produced manifest expands to the exact same role state as the flat version
    #[arg(long)]
    pub(in crate::cli) suggest_profiles: bool,
    /// Minimum number of distinct schemas a candidate cluster must span before it becomes a profile
    #[arg(long, default_value_t = 2, requires = "suggest_profiles")]
    pub(in crate::cli) suggest_min_schemas: usize,
}

/// `graph`
#[derive(Debug, clap::Args)]
pub struct GraphArgs {
    #[command(subcommand)]
    pub(in crate::cli) what: GraphCommand,
}

/// The source of the graph.
#[derive(Debug, Subcommand)]
#[allow(missing_docs)] // A comment on flattened arguments would replace the help text.
pub enum GraphCommand {
    /// Build the graph from a manifest file (desired state)
    Desired {
        #[command(flatten)]
        source: SourceArgs,
        #[command(flatten)]
        output: GraphOutput,
    },
    /// Build the graph from a live database (current state)
    Current {
        #[command(flatten)]
        source: SourceArgs,
        #[command(flatten)]
        database: DatabaseArgs,
        /// Which roles to include: "managed" (requires -f) or "all"
        #[arg(long, value_enum, default_value_t = GraphScope::Managed)]
        scope: GraphScope,
        #[command(flatten)]
        output: GraphOutput,
    },
}

/// The roles to draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum GraphScope {
    Managed,
    All,
}

/// Format and destination of a graph.
#[derive(Debug, clap::Args)]
pub struct GraphOutput {
    /// Output format
    #[arg(long, value_enum, default_value_t = GraphFormat::Tree)]
    pub(in crate::cli) format: GraphFormat,
    /// Write output to this file instead of stdout
    #[arg(short, long)]
    pub(in crate::cli) output: Option<PathBuf>,
}

/// Formats of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum GraphFormat {
    Tree,
    Json,
    Dot,
    Mermaid,
}
