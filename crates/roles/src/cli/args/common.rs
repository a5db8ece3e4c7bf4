//! Arguments that several commands share: a manifest, a database, a mode.

use std::path::PathBuf;

use clap::ValueEnum;

use crate::plan::Mode;

/// The source of the desired state.
#[derive(Debug, clap::Args)]
pub struct SourceArgs {
    /// Path to the policy manifest YAML file [default: pgroles.yaml]
    #[arg(short, long, conflicts_with = "bundle")]
    pub(in crate::cli) file: Option<PathBuf>,
    /// Path to the policy bundle YAML file
    #[arg(long)]
    pub(in crate::cli) bundle: Option<PathBuf>,
}

/// The database, and the timeouts for it.
#[derive(Debug, clap::Args)]
pub struct DatabaseArgs {
    /// PostgreSQL connection string (or set DATABASE_URL)
    #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
    pub(in crate::cli) database_url: String,
    /// Obtain a short-lived password from a token provider
    #[arg(long, value_enum, env = "PGROLES_DATABASE_AUTH")]
    pub(in crate::cli) auth: Option<Auth>,
    /// Seconds that a statement may take
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    pub(in crate::cli) statement_timeout: u64,
    /// Seconds to wait for a lock
    #[arg(long, default_value_t = 10, value_name = "SECONDS")]
    pub(in crate::cli) lock_timeout: u64,
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
    pub(in crate::cli) mode: ModeName,
    /// Allow adopt mode to transfer schema ownership to the declared owner. Without it, apply refuses such a plan, and
    /// diff reports it
    #[arg(long)]
    pub(in crate::cli) allow_schema_owner_transfers: bool,
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
