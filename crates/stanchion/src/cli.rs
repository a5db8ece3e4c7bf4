//! The command line: the commands, and how they fail.

use std::ffi::OsStr;
use std::fmt;
use std::path::Path;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use stanchion_roles_cli as roles;

use crate::reconcile::CurrentCluster;
#[cfg(feature = "sandbox")]
use crate::sandbox;
use crate::{completion, crds, doctor, generate, man, manifest, rbac, report, run, status, ui};

/// One Kubernetes operator for platforms that run on PostgreSQL.
#[derive(Debug, Parser)]
#[command(name = "stanchion", version, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// The commands. A command is a module with its arguments and a function; here it gets its name.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the operator on the cluster of KUBECONFIG, or on the one that its pod runs in
    Run(Box<run::Arguments>),
    /// Run a demo without a cluster: an API server, PostgreSQL, the operator and its examples, until Ctrl-C. Not for
    /// production
    #[cfg(feature = "sandbox")]
    Sandbox(sandbox::Arguments),
    /// Show the objects that the operator manages, the worst first; with a name, one object as a tree
    Status(status::Arguments),
    /// Check the cluster, the operator and its objects for problems, and show how to fix them
    Doctor(doctor::Arguments),
    /// Show the objects in the browser: a page on loopback, with a token in its address, until Ctrl-C
    Ui(ui::Arguments),
    /// Write a ZIP file with what a maintainer needs to help: objects, events, logs, findings, without secrets
    Report(report::Arguments),
    /// Print all CRDs as YAML
    Crds(crds::Arguments),
    /// Print the minimal RBAC manifests as YAML
    Rbac(rbac::Arguments),
    /// Print all manifests to install the operator as YAML: namespace, CRDs, RBAC, Deployment
    Manifest(manifest::Arguments),
    /// Access control as code: validate, diff, apply, inspect and generate role policies
    Roles(Box<roles::Args>),
    /// Print a completion script for your shell
    Completion(completion::Arguments),
    /// Write a manual page for each command into a folder
    Man(man::Arguments),
    /// Write the generated files of this repository
    #[command(hide = true)]
    Generate(generate::Arguments),
}

impl Command {
    /// Runs the command. Only `roles` has other exit codes: scripts use them to distinguish drift from failure.
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        match self {
            Self::Roles(arguments) => {
                return Ok(roles::main(*arguments, roles::Name::Stanchion, &CurrentCluster));
            }
            Self::Status(arguments) => return status::run(&arguments).map_err(Failure::of),
            Self::Doctor(arguments) => return doctor::run(&arguments).map_err(Failure::of),
            Self::Report(arguments) => return report::run(&arguments).map_err(Failure::of),
            Self::Run(arguments) => run::run(&arguments)?,
            #[cfg(feature = "sandbox")]
            Self::Sandbox(arguments) => sandbox::run(&arguments).map_err(Failure::of)?,
            Self::Ui(arguments) => ui::run(&arguments).map_err(Failure::of)?,
            Self::Crds(arguments) => crds::run(&arguments).map_err(Failure::of)?,
            Self::Rbac(arguments) => rbac::run(&arguments).map_err(Failure::of)?,
            Self::Manifest(arguments) => manifest::run(&arguments).map_err(Failure::of)?,
            Self::Completion(arguments) => completion::run(&arguments).map_err(Failure::of)?,
            Self::Man(arguments) => man::run(&arguments).map_err(Failure::of)?,
            Self::Generate(arguments) => generate::run(&arguments).map_err(Failure::of)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Why the process fails, in one line.
#[derive(Debug)]
pub(crate) struct Failure {
    line: String,
    code: u8,
}

impl Failure {
    /// The command is valid but failed.
    pub(crate) fn of(error: impl fmt::Display) -> Self {
        Self::with_code(&error.to_string(), 1)
    }

    /// The command is invalid.
    pub(crate) fn usage(error: impl fmt::Display) -> Self {
        Self::with_code(&error.to_string(), 2)
    }

    fn with_code(text: &str, code: u8) -> Self {
        let words: Vec<&str> = text.split_whitespace().collect();
        Self {
            line: words.join(" "),
            code,
        }
    }

    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        self.code
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}

/// Parses the command line of this process. Prints help and version.
pub(crate) fn parse() -> Result<Command, Failure> {
    let program = std::env::args_os().next().unwrap_or_default();
    let parsed = command(Path::new(&program))
        .try_get_matches()
        .and_then(|matches| Cli::from_arg_matches(&matches));
    parsed.map(|cli| cli.command).map_err(|error| {
        let asked_for_text = matches!(
            error.kind(),
            ErrorKind::DisplayHelp
                | ErrorKind::DisplayVersion
                | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        );
        if asked_for_text {
            error.exit();
        }
        let mut failure = Failure::usage(first_part(&error.render().to_string()));
        if std::env::args_os()
            .nth(1)
            .is_some_and(|command| command == "roles")
        {
            // In `roles`, 2 means drift.
            failure.code = roles::usage_code(&error);
        }
        failure
    })
}

/// The command line under the name by which it was called. As a plugin of kubectl it is `kubectl stanchion`, and its help
/// says so.
fn command(program: &Path) -> clap::Command {
    let cli = Cli::command();
    match program.file_name().and_then(OsStr::to_str) {
        Some("kubectl-stanchion") => cli.bin_name("kubectl stanchion"),
        _ => cli,
    }
}

/// The error and its tip, without the usage.
fn first_part(rendered: &str) -> String {
    let parts: Vec<&str> = rendered
        .split("\n\n")
        .map(str::trim)
        .take_while(|part| !part.starts_with("Usage:") && !part.starts_with("For more information"))
        .collect();
    let text = parts.join("; ");
    text.strip_prefix("error: ").unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_failure_is_one_line() {
        let failure = Failure::of("cannot read it:\n  line 1\n  line 2\n");
        assert_eq!(failure.to_string(), "cannot read it: line 1 line 2");
    }

    #[test]
    fn a_usage_error_keeps_its_tip_and_loses_the_rest() {
        let rendered = "error: invalid value 'x' for '--log-format <FORMAT>'\n  [possible values: json]\n\n  tip: try json\n\nUsage: stanchion run\n\nFor more information, try '--help'.\n";
        assert_eq!(
            Failure::usage(first_part(rendered)).to_string(),
            "invalid value 'x' for '--log-format <FORMAT>' [possible values: json]; tip: try json"
        );
    }

    /// The commands for a person with their own kubeconfig. Like kubectl's, their options have no environment
    /// variables.
    const OF_A_PERSON: [&str; 6] = ["completion", "doctor", "man", "report", "status", "ui"];

    /// Every option also has an environment variable with a derived name. The options of `roles` are those of pgroles.
    #[test]
    fn every_option_is_an_environment_variable() {
        for command in Cli::command()
            .get_subcommands()
            .filter(|command| !command.is_hide_set() && command.get_name() != "roles")
            .filter(|command| !OF_A_PERSON.contains(&command.get_name()))
        {
            for argument in command.get_arguments() {
                let long = argument.get_long().unwrap();
                let expected = format!("STANCHION_{}", long.to_uppercase().replace('-', "_"));
                assert_eq!(argument.get_env().unwrap(), expected.as_str());
            }
        }
    }
}
