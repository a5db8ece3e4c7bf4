//! The command line.
//!
//! The doc comments are the help texts, which are no Markdown.
#![allow(clippy::doc_markdown)]

use std::path::PathBuf;

use clap::{ArgAction, Subcommand, ValueEnum};

use crate::plan::Mode;

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
    pub(super) lenient: bool,
    /// Refuse them (the default, except for `pgroles`)
    #[arg(long, global = true)]
    pub(super) strict: bool,
    #[command(subcommand)]
    pub(super) command: Command,
}

/// What to do.
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

/// Where the desired state is written.
#[derive(Debug, clap::Args)]
pub struct SourceArgs {
    /// Path to the policy manifest YAML file [default: pgroles.yaml]
    #[arg(short, long, conflicts_with = "bundle")]
    pub(super) file: Option<PathBuf>,
    /// Path to the policy bundle YAML file
    #[arg(long)]
    pub(super) bundle: Option<PathBuf>,
}

/// Which database, and how patient to be with it.
#[derive(Debug, clap::Args)]
pub struct DatabaseArgs {
    /// PostgreSQL connection string (or set DATABASE_URL)
    #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
    pub(super) database_url: String,
    /// Seconds that a statement may take
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    pub(super) statement_timeout: u64,
    /// Seconds to wait for a lock
    #[arg(long, default_value_t = 10, value_name = "SECONDS")]
    pub(super) lock_timeout: u64,
}

/// How far to go.
#[derive(Debug, clap::Args)]
pub struct ModeArgs {
    /// Reconciliation mode: how aggressively to converge the database.
    ///
    /// - authoritative: full convergence: what is managed and not in the manifest is revoked (default).
    /// - additive: only grant, never revoke: safe for incremental adoption.
    /// - adopt: manage declared roles fully, but never drop roles.
    #[arg(long, value_enum, default_value_t = ModeName::Authoritative)]
    pub(super) mode: ModeName,
    /// Allow adopt mode to transfer schema ownership to the declared owner
    #[arg(long)]
    pub(super) allow_schema_owner_transfers: bool,
}

/// The modes by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum ModeName {
    Authoritative,
    Additive,
    Adopt,
}

impl From<ModeName> for Mode {
    fn from(name: ModeName) -> Self {
        match name {
            ModeName::Authoritative => Self::Authoritative,
            ModeName::Additive => Self::Additive,
            ModeName::Adopt => Self::Adopt,
        }
    }
}

/// `diff`
#[derive(Debug, clap::Args)]
pub struct DiffArgs {
    #[command(flatten)]
    pub(super) source: SourceArgs,
    #[command(flatten)]
    pub(super) database: DatabaseArgs,
    /// Output format: "sql" for raw SQL, "summary" for a brief summary, "json" for machine-readable JSON, "markdown"
    /// for a review table
    #[arg(long, value_enum, default_value_t = PlanFormat::Sql)]
    pub(super) format: PlanFormat,
    #[command(flatten)]
    pub(super) mode: ModeArgs,
    /// Exit with code 2 when drift is detected (the default)
    #[arg(long, overrides_with = "no_exit_code", action = ArgAction::SetTrue)]
    pub(super) exit_code: bool,
    /// Exit with code 0 when drift is detected
    #[arg(long)]
    pub(super) no_exit_code: bool,
    /// Write the plan to a file, for `apply --plan`
    #[arg(long, value_name = "FILE")]
    pub(super) save_plan: Option<PathBuf>,
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
    pub(super) source: SourceArgs,
    #[command(flatten)]
    pub(super) database: DatabaseArgs,
    /// Print the SQL that would be executed without actually running it
    #[arg(long)]
    pub(super) dry_run: bool,
    #[command(flatten)]
    pub(super) mode: ModeArgs,
    /// Apply a plan that `diff --save-plan` wrote, if it is still the plan
    #[arg(long, value_name = "FILE", conflicts_with_all = ["file", "bundle", "mode", "allow_schema_owner_transfers"])]
    pub(super) plan: Option<PathBuf>,
}

/// `inspect`
#[derive(Debug, clap::Args)]
pub struct InspectArgs {
    /// Path to policy manifest YAML. When provided, scopes output to roles and schemas declared in the manifest. When
    /// omitted, shows all non-system database roles and privileges
    #[arg(short, long, conflicts_with = "bundle")]
    pub(super) file: Option<PathBuf>,
    /// Path to the policy bundle YAML file. When provided, scopes output to the composed bundle ownership boundaries
    #[arg(long)]
    pub(super) bundle: Option<PathBuf>,
    #[command(flatten)]
    pub(super) database: DatabaseArgs,
}

/// `generate`
#[derive(Debug, clap::Args)]
pub struct GenerateArgs {
    #[command(flatten)]
    pub(super) database: DatabaseArgs,
    /// Write output to this file instead of stdout
    #[arg(short, long)]
    pub(super) output: Option<PathBuf>,
    /// Refactor the generated manifest into reusable profiles where roles share an identical schema-relative privilege
    /// shape across multiple schemas. The produced manifest expands to the exact same role state as the flat version
    #[arg(long)]
    pub(super) suggest_profiles: bool,
    /// Minimum number of distinct schemas a candidate cluster must span before it becomes a profile
    #[arg(long, default_value_t = 2, requires = "suggest_profiles")]
    pub(super) suggest_min_schemas: usize,
}

/// `graph`
#[derive(Debug, clap::Args)]
pub struct GraphArgs {
    #[command(subcommand)]
    pub(super) what: GraphCommand,
}

/// What to draw.
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

/// Which roles to draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum GraphScope {
    Managed,
    All,
}

/// How and where to draw.
#[derive(Debug, clap::Args)]
pub struct GraphOutput {
    /// Output format
    #[arg(long, value_enum, default_value_t = GraphFormat::Tree)]
    pub(super) format: GraphFormat,
    /// Write output to this file instead of stdout
    #[arg(short, long)]
    pub(super) output: Option<PathBuf>,
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

/// `render-bundle`
#[derive(Debug, clap::Args)]
pub struct RenderBundleArgs {
    /// Path to the policy bundle YAML file
    #[arg(long)]
    pub(super) bundle: PathBuf,
    /// Write output to this file instead of stdout
    #[arg(short, long, conflicts_with = "check")]
    pub(super) output: Option<PathBuf>,
    /// Suppress the provenance header comment block at the top of the output
    #[arg(long)]
    pub(super) no_header: bool,
    /// Compare the rendered output against an existing file and exit with code 2 if they differ
    #[arg(long, value_name = "PATH")]
    pub(super) check: Option<PathBuf>,
}

/// `fmt`
#[derive(Debug, clap::Args)]
pub struct FmtArgs {
    /// Path to the policy manifest YAML file
    #[arg(short, long, default_value = "pgroles.yaml")]
    pub(super) file: PathBuf,
    /// Only tell whether the file is in the canonical form: exit with code 2 if not
    #[arg(long)]
    pub(super) check: bool,
    /// Rewrite a file that has comments, which are lost
    #[arg(long)]
    pub(super) drop_comments: bool,
}
