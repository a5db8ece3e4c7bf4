//! The command line arguments.
//!
//! The doc comments are the help texts; clap does not render Markdown.
#![allow(clippy::doc_markdown)]

mod database;

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::Subcommand;

pub use database::{
    ApplyArgs, Auth, DatabaseArgs, DiffArgs, GenerateArgs, GraphArgs, GraphCommand, GraphFormat, GraphOutput,
    GraphScope, InspectArgs, ModeArgs, ModeName, PlanFormat, ReviewArgs, SourceArgs,
};

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
    pub(crate) lenient: bool,
    /// Refuse them (the default, except for `pgroles`)
    #[arg(long, global = true)]
    pub(crate) strict: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
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

/// `render-bundle`
#[derive(Debug, clap::Args)]
pub struct RenderBundleArgs {
    /// Path to the policy bundle YAML file
    #[arg(long)]
    pub(crate) bundle: PathBuf,
    /// Write output to this file instead of stdout
    #[arg(short, long, conflicts_with = "check")]
    pub(crate) output: Option<PathBuf>,
    /// Suppress the provenance header comment block at the top of the output
    #[arg(long)]
    pub(crate) no_header: bool,
    /// Compare the rendered output against an existing file and exit with code 2 if they differ
    #[arg(long, value_name = "PATH")]
    pub(crate) check: Option<PathBuf>,
}

/// `fmt`
#[derive(Debug, clap::Args)]
pub struct FmtArgs {
    /// Path to the policy manifest YAML file
    #[arg(short, long, default_value = "pgroles.yaml")]
    pub(crate) file: PathBuf,
    /// Only check whether the file is in the canonical form: exit with code 2 if not
    #[arg(long)]
    pub(crate) check: bool,
    /// Rewrite a file that has comments, which are lost
    #[arg(long)]
    pub(crate) drop_comments: bool,
}

/// `reconcile`
#[derive(Debug, Clone, clap::Args)]
pub struct ReconcileArgs {
    /// The PostgresPolicy, either NAME or postgrespolicy/NAME
    pub resource: Policy,
    /// Kubernetes namespace containing the PostgresPolicy
    #[arg(short, long, default_value = "default")]
    pub namespace: String,
    /// Wait until the operator has run this request, and fail with the reason if it did not succeed
    #[arg(long)]
    pub wait: bool,
    /// Maximum time to wait, e.g. "30s", "2m", or "1m30s"
    #[arg(long, default_value = "2m", value_parser = duration)]
    pub timeout: Duration,
}

/// The name of a PostgresPolicy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy(pub String);

impl FromStr for Policy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const KINDS: [&str; 4] = [
            "postgrespolicy",
            "postgrespolicies",
            "postgrespolicies.pgroles.io",
            "pgr",
        ];
        let (kind, name) = text.split_once('/').unwrap_or((KINDS[0], text));
        if !KINDS.contains(&kind.to_ascii_lowercase().as_str()) {
            return Err(format!(
                "unsupported reconcile resource kind `{kind}`: only a PostgresPolicy can be asked for"
            ));
        }
        if name.is_empty() {
            return Err("the name of the PostgresPolicy is missing".to_owned());
        }
        Ok(Self(name.to_owned()))
    }
}

/// `90`, `90s`, `2m`, `1m30s`, `1h`.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a duration such as 30s, 2m or 1m30s");
    let mut seconds = 0u64;
    let mut number = String::new();
    for c in text.chars() {
        let unit = match c {
            '0'..='9' => {
                number.push(c);
                continue;
            }
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            _ => return Err(wrong()),
        };
        let count: u64 = number.parse().map_err(|_| wrong())?;
        number.clear();
        seconds = count
            .checked_mul(unit)
            .and_then(|more| seconds.checked_add(more))
            .ok_or_else(wrong)?;
    }
    match number.parse::<u64>() {
        Ok(rest) if seconds == 0 => Ok(Duration::from_secs(rest)),
        Err(_) if number.is_empty() && seconds > 0 => Ok(Duration::from_secs(seconds)),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_by_name_and_by_kind() {
        for text in ["db", "postgrespolicy/db", "PostgresPolicy/db", "pgr/db"] {
            assert_eq!(text.parse(), Ok(Policy("db".to_owned())), "{text}");
        }
        assert!("secret/db".parse::<Policy>().unwrap_err().contains("secret"));
        assert!("postgrespolicy/".parse::<Policy>().is_err());
    }

    #[test]
    fn durations() {
        for (text, seconds) in [("90", 90), ("30s", 30), ("2m", 120), ("1m30s", 90), ("1h", 3_600)] {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "m", "1d", "1m30", "-1s", "99999999999999999999h"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
