//! Arguments of the commands that use a database: `diff`, `apply`, `inspect`, `generate`, `graph`.

use std::path::PathBuf;

use clap::{ArgAction, Subcommand, ValueEnum};

use stanchion_roles::plan::Mode;

/// The source of the desired state.
#[derive(Debug, clap::Args)]
pub struct SourceArgs {
    /// Path to the policy manifest YAML file [default: pgroles.yaml]
    #[arg(short, long, conflicts_with = "bundle")]
    pub(crate) file: Option<PathBuf>,
    /// Path to the policy bundle YAML file
    #[arg(long)]
    pub(crate) bundle: Option<PathBuf>,
}

/// The database, and the timeouts for it.
#[derive(Debug, clap::Args)]
pub struct DatabaseArgs {
    /// PostgreSQL connection string (or set DATABASE_URL)
    #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
    pub(crate) database_url: String,
    /// Obtain a short-lived password from a token provider
    #[arg(long, value_enum, env = "PGROLES_DATABASE_AUTH")]
    pub(crate) auth: Option<Auth>,
    /// Seconds that a statement may take
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    pub(crate) statement_timeout: u64,
    /// Seconds to wait for a lock
    #[arg(long, default_value_t = 10, value_name = "SECONDS")]
    pub(crate) lock_timeout: u64,
}

/// The token provider for the database login.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Auth {
    /// Azure Database for PostgreSQL, by the workload identity of this pod
    AzureWorkloadIdentity,
}

/// The mode of a comparison.
#[derive(Debug, clap::Args)]
pub struct ModeArgs {
    /// Reconciliation mode: how aggressively to converge the database.
    ///
    /// - authoritative: full convergence: revokes what is managed and not in the manifest (default).
    /// - additive: only grant, never revoke: safe for incremental adoption.
    /// - adopt: manage declared roles fully, but never drop roles.
    #[arg(long, value_enum, default_value_t = ModeName::Authoritative)]
    pub(crate) mode: ModeName,
    /// Allow adopt mode to transfer schema ownership to the declared owner. Without it, apply refuses such a plan, and
    /// diff reports it
    #[arg(long)]
    pub(crate) allow_schema_owner_transfers: bool,
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
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) database: DatabaseArgs,
    /// Output format: "sql" for raw SQL, "summary" for a brief summary, "json" for machine-readable JSON, "markdown"
    /// for a review table
    #[arg(long, value_enum, default_value_t = PlanFormat::Sql)]
    pub(crate) format: PlanFormat,
    #[command(flatten)]
    pub(crate) mode: ModeArgs,
    /// Exit with code 2 when drift is detected (the default)
    #[arg(long, overrides_with = "no_exit_code", action = ArgAction::SetTrue)]
    pub(crate) exit_code: bool,
    /// Exit with code 0 when drift is detected
    #[arg(long)]
    pub(crate) no_exit_code: bool,
    /// Write the plan to a file, for `apply --plan`
    #[arg(long, value_name = "FILE")]
    pub(crate) save_plan: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) review: ReviewArgs,
}

/// The plan as a file without secrets.
#[derive(Debug, clap::Args)]
pub struct ReviewArgs {
    /// Write a sanitized, review-only plan artifact to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) review_out: Option<PathBuf>,
    /// Human-readable target label recorded in the review artifact
    #[arg(long, requires = "review_out")]
    pub(crate) target_label: Option<String>,
    /// Policy source revision recorded in the review artifact
    #[arg(long, requires = "review_out")]
    pub(crate) policy_commit: Option<String>,
    /// Intended executor role recorded in the review artifact; the checks use the authority of the connected role
    #[arg(long, requires = "review_out")]
    pub(crate) executor_role: Option<String>,
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
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) database: DatabaseArgs,
    /// Print the SQL that would be executed without actually running it
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) mode: ModeArgs,
    /// Apply a plan that `diff --save-plan` wrote, if it still matches the database
    #[arg(long, value_name = "FILE", conflicts_with_all = ["file", "bundle", "mode", "allow_schema_owner_transfers"])]
    pub(crate) plan: Option<PathBuf>,
}

/// `inspect`
#[derive(Debug, clap::Args)]
pub struct InspectArgs {
    /// Path to policy manifest YAML. When provided, scopes output to roles and schemas declared in the manifest. When
    /// omitted, shows all non-system database roles and privileges
    #[arg(short, long, conflicts_with = "bundle")]
    pub(crate) file: Option<PathBuf>,
    /// Path to the policy bundle YAML file. When provided, scopes output to the composed bundle ownership boundaries
    #[arg(long)]
    pub(crate) bundle: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) database: DatabaseArgs,
}

/// `generate`
#[derive(Debug, clap::Args)]
pub struct GenerateArgs {
    #[command(flatten)]
    pub(crate) database: DatabaseArgs,
    /// Write output to this file instead of stdout
    #[arg(short, long)]
    pub(crate) output: Option<PathBuf>,
    /// Refactor the generated manifest into reusable profiles where roles share an identical schema-relative privilege
    /// shape across multiple schemas. The produced manifest expands to the exact same role state as the flat version
    #[arg(long)]
    pub(crate) suggest_profiles: bool,
    /// Minimum number of distinct schemas a candidate cluster must span before it becomes a profile
    #[arg(long, default_value_t = 2, requires = "suggest_profiles")]
    pub(crate) suggest_min_schemas: usize,
}

/// `graph`
#[derive(Debug, clap::Args)]
pub struct GraphArgs {
    #[command(subcommand)]
    pub(crate) what: GraphCommand,
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
    pub(crate) format: GraphFormat,
    /// Write output to this file instead of stdout
    #[arg(short, long)]
    pub(crate) output: Option<PathBuf>,
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
