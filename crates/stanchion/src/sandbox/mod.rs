//! `stanchion sandbox`: a demo of Stanchion without a cluster. For trying and testing, never for production, as it says
//! at the start.
//!
//! ```text
//!   home       a directory, removed at the end or kept (--data)
//!   api        the embedded API server and its kubeconfig; command: images that are local commands
//!   servers    a real PostgreSQL and a real S3, on free ports
//!   operator   what `stanchion run` runs, with the permissions that `stanchion rbac` prints
//!   examples   the objects to apply, and what to try with them: one row per system
//!   page       `stanchion ui` on the sandbox, whose address is printed first
//!   scene      the state of the objects (pure), and view: its display
//!   demo       everything in order, and the shutdown in reverse
//! ```
//!
//! It is a feature of the build (`sandbox`, on by default). The released program has it, and so does the image, which contains the
//! same program; an image for clusters only can be built without it. It uses the same libraries as the tests, `stanchion-sandbox` and `stanchion-local`, but not the testkit,
//! which panics on errors.

mod api;
mod command;
mod demo;
mod error;
mod examples;
mod home;
mod manifests;
mod operator;
mod scene;
mod servers;
mod view;

use std::fs::File;
use std::path::PathBuf;
use std::sync::Mutex;

use clap::builder::BoolishValueParser;
use stanchion_kernel::telemetry::logs;
use tokio_util::sync::CancellationToken;

use self::api::ApiServer;
use self::command::ImageCommand;
use self::error::SandboxError;
use self::home::Home;
use self::view::say;
use crate::controllers::Choice;

/// Printed at the start, after the address of the page.
const WARNING: &str = "Stanchion sandbox, for trying and testing, never for production";

/// Arguments of `stanchion sandbox`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Exit when everything is ready: with 0, or with 1 and the reason after the timeout
    #[arg(long, env = "STANCHION_ONCE", value_parser = BoolishValueParser::new())]
    once: bool,

    /// Timeout of --once, in seconds
    #[arg(
        long,
        env = "STANCHION_TIMEOUT",
        value_name = "SECONDS",
        default_value_t = 180
    )]
    timeout: u64,

    /// Serve only the API: no PostgreSQL, no S3, no operator, no examples
    #[arg(long, env = "STANCHION_API_ONLY", value_parser = BoolishValueParser::new(),
          conflicts_with_all = ["once", "controllers"])]
    api_only: bool,

    /// File for the kubeconfig, written when the API server is ready and removed when it ends
    #[arg(long, env = "STANCHION_KUBECONFIG", value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Port of the API server on loopback; 0 selects a free one
    #[arg(long, env = "STANCHION_PORT", value_name = "N", default_value_t = 0)]
    port: u16,

    /// Keep objects and databases in this folder between runs
    #[arg(long, env = "STANCHION_DATA", value_name = "DIR")]
    data: Option<PathBuf>,

    /// Run containers whose image name contains IMAGE as this local command; can be repeated. Words are separated by
    /// spaces; arguments and environment come from the container
    #[arg(long, env = "STANCHION_RUN", value_name = "IMAGE=COMMAND")]
    run: Vec<ImageCommand>,

    #[command(flatten)]
    controllers: Choice,
}

/// Runs until a signal comes, or with `--once` until everything is ready.
pub(crate) fn run(arguments: &Arguments) -> Result<(), SandboxError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = runtime.block_on(async {
        let shutdown = crate::run::shutdown()?;
        // Dropped in reverse order: the servers end before their directory is removed.
        let home = Home::open(arguments.data.as_deref())?;
        log_into(&home)?;
        let api = ApiServer::start(arguments, &home).await?;
        serve(arguments, &home, &api, shutdown).await
    });
    // Remaining tasks must not delay the end.
    runtime.shutdown_background();
    ended
}

async fn serve(
    arguments: &Arguments,
    home: &Home,
    api: &ApiServer,
    shutdown: CancellationToken,
) -> Result<(), SandboxError> {
    let server = format!("API server   {}", api.url());
    if arguments.api_only {
        say(&[WARNING.to_owned(), String::new(), server, api.export()])?;
        shutdown.cancelled().await;
        return Ok(());
    }
    let page = demo::page(arguments, api).await?;
    let mut lines: Vec<String> = page
        .iter()
        .flat_map(|page| [format!("Open {}", page.address()), String::new()])
        .collect();
    lines.extend([WARNING.to_owned(), String::new(), server]);
    say(&lines)?;
    Box::pin(demo::run(arguments, home, api, shutdown)).await
}

/// The log goes to a file: the terminal shows the progress.
fn log_into(home: &Home) -> Result<(), SandboxError> {
    let file = File::options().create(true).append(true).open(home.log())?;
    let log = logs::subscriber(
        logs::Format::Text,
        logs::DEFAULT_FILTER,
        Vec::new(),
        Mutex::new(file),
        false,
    )?;
    // This fails only if there already is a log, which is not the case.
    let _ = tracing::subscriber::set_global_default(log);
    Ok(())
}
