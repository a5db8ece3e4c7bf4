//! The command `stanchion roles …`, and `pgroles …` when the program is called by that name.
//!
//! All input and output goes through a [`Console`], so that tests run the command in their process; the binary only
//! wires it up. Exit codes: 0 in sync or done, 2 drift, 1 error, 64 wrong usage (so that CI can distinguish misuse from
//! drift).

mod apply;
pub mod args;
pub mod auth;
mod bundle;
mod console;
mod database;
mod diff;
mod graph;
mod inspect;
mod manifest;
mod markdown;
mod saved;
mod source;

pub use args::{Args, ReconcileArgs};
pub use console::Console;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use args::Command;

use stanchion_roles::manifest::{Strictness, json_schema};

/// Done, or nothing to do.
pub const OK: u8 = 0;
/// Something failed.
pub(crate) const FAILED: u8 = 1;
/// The database differs from the manifest.
pub(crate) const DRIFT: u8 = 2;
/// The command line is invalid (`EX_USAGE`).
pub const USAGE: u8 = 64;

/// The name under which the command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    /// `stanchion roles`: strict by default.
    Stanchion,
    /// `pgroles`: lenient by default.
    Pgroles,
}

/// Whether the program was called as `pgroles`.
pub fn is_pgroles(program: &Path) -> bool {
    program.file_stem().is_some_and(|name| name == "pgroles")
}

/// The error message of a command.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Failure(String);

impl Failure {
    fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

/// Adds the current action to an error.
trait While<T> {
    fn doing(self, what: impl std::fmt::Display) -> Result<T, Failure>;
}

impl<T, E: std::fmt::Display> While<T> for Result<T, E> {
    fn doing(self, what: impl std::fmt::Display) -> Result<T, Failure> {
        self.map_err(|error| Failure(format!("{what}: {error}")))
    }
}

/// A cluster that runs the operator. This crate has no cluster client; the binary implements this trait.
pub trait Cluster {
    /// Requests a reconcile of a policy and returns the result.
    fn reconcile(&self, request: &ReconcileArgs) -> impl Future<Output = Result<String, String>>;
}

/// Runs a command; returns the exit code.
pub async fn run(args: Args, name: Name, console: &mut Console<'_>, cluster: &impl Cluster) -> u8 {
    let lenient = args.lenient || (name == Name::Pgroles && !args.strict);
    let strictness = if lenient {
        Strictness::Lenient
    } else {
        Strictness::Strict
    };
    let result = match args.command {
        Command::Validate(source) => manifest::validate(&source, strictness, console),
        Command::Diff(args) => Box::pin(diff::run(&args, strictness, console)).await,
        Command::Apply(args) => Box::pin(apply::run(&args, strictness, console)).await,
        Command::Inspect(args) => Box::pin(inspect::run(&args, strictness, console)).await,
        Command::Generate(args) => Box::pin(manifest::generate(&args, console)).await,
        Command::Graph(args) => Box::pin(graph::run(&args, strictness, console)).await,
        Command::RenderBundle(args) => bundle::render(&args, strictness, name, console),
        Command::Reconcile(args) => reconcile(&args, console, cluster).await,
        Command::Fmt(args) => manifest::fmt(&args, strictness, console),
        Command::Schema => schema(console),
        Command::Completions { shell } => Ok(completions(shell, name, console)),
    };
    result.unwrap_or_else(|failure| {
        console.error(&format!("Error: {failure}"));
        FAILED
    })
}

/// Runs the program as `pgroles`.
pub async fn run_as_pgroles(
    argv: impl IntoIterator<Item = OsString>,
    console: &mut Console<'_>,
    cluster: &impl Cluster,
) -> u8 {
    match Pgroles::try_parse_from(argv) {
        Ok(Pgroles { args }) => run(args, Name::Pgroles, console, cluster).await,
        Err(error) => {
            let text = error.render();
            if error.use_stderr() {
                console.error(text.to_string().trim_end());
            } else {
                console.print(&text.to_string());
            }
            usage_code(&error)
        }
    }
}

/// Entry point of `stanchion roles …`.
pub fn main(args: Args, name: Name, cluster: &impl Cluster) -> ExitCode {
    with_console(async |console| run(args, name, console, cluster).await)
}

/// Entry point when the binary is called as `pgroles`.
pub fn main_as_pgroles(arguments: impl IntoIterator<Item = OsString>, cluster: &impl Cluster) -> ExitCode {
    with_console(async |console| run_as_pgroles(arguments, console, cluster).await)
}

/// Runs with the streams and the environment of the process, on a single-threaded runtime.
fn with_console(work: impl AsyncFnOnce(&mut Console<'_>) -> u8) -> ExitCode {
    let (mut out, mut err) = (std::io::stdout(), std::io::stderr());
    let env = |name: &str| std::env::var(name).ok();
    let mut console = Console::new(&mut out, &mut err, &env).of_the_process();
    // One connection needs one thread; more would only cost memory.
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => ExitCode::from(runtime.block_on(work(&mut console))),
        Err(error) => {
            console.error(&format!("Error: no runtime: {error}"));
            ExitCode::from(FAILED)
        }
    }
}

/// The exit code of a clap error.
pub fn usage_code(error: &clap::Error) -> u8 {
    if error.use_stderr() { USAGE } else { OK }
}

/// Access control as code: validate, diff, apply, inspect and generate role policies.
#[derive(Debug, Parser)]
#[command(name = "pgroles", version)]
struct Pgroles {
    #[command(flatten)]
    args: Args,
}

/// The command as a subcommand of the program.
#[derive(Debug, Parser)]
#[command(name = "stanchion", version)]
struct Stanchion {
    #[command(subcommand)]
    part: Part,
}

#[derive(Debug, clap::Subcommand)]
enum Part {
    /// Access control as code.
    Roles(Args),
}

async fn reconcile(
    args: &ReconcileArgs,
    console: &mut Console<'_>,
    cluster: &impl Cluster,
) -> Result<u8, Failure> {
    let said = cluster
        .reconcile(args)
        .await
        .doing(format_args!("failed to reconcile {}", args.resource.0))?;
    console.print(&format!("{said}\n"));
    Ok(OK)
}

fn schema(console: &mut Console<'_>) -> Result<u8, Failure> {
    let text = serde_json::to_string_pretty(&json_schema()).doing("failed to write the schema")?;
    console.print(&format!("{text}\n"));
    Ok(OK)
}

fn completions(shell: clap_complete::Shell, name: Name, console: &mut Console<'_>) -> u8 {
    let mut command = match name {
        Name::Pgroles => Pgroles::command(),
        Name::Stanchion => Stanchion::command(),
    };
    let program = command.get_name().to_owned();
    let mut text = vec![];
    clap_complete::generate(shell, &mut command, program, &mut text);
    console.print(&String::from_utf8_lossy(&text));
    OK
}
