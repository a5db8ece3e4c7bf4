//! `stanchion sandbox`: Stanchion alive in one command, without a cluster. For trying and testing, never for
//! production, and it says so.
//!
//! ```text
//!   home       a directory, thrown away at the end or kept (--data)
//!   api        the embedded API server and its kubeconfig; command: images that are commands
//!   servers    a real PostgreSQL and a real S3, on free ports
//!   operator   what `stanchion run` runs, with the rights that `stanchion rbac` prints
//!   examples   what is applied, and what to try with it: one row a system
//!   scene      what there is to see (pure), and view: how it is shown
//!   demo       all of it, in order, and the end in reverse
//! ```
//!
//! It is a feature of the build (`sandbox`, on by default): an image for a cluster has no use for an API server and
//! leaves it out. It stands on the libraries that the tests stand on, `stanchion-sandbox` and `stanchion-local`,
//! and not on the test bed, which panics and may.

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

/// Said before anything else.
const WARNING: &str = "Stanchion sandbox, for trying and testing, never for production";

/// Arguments of `stanchion sandbox`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// End when all is ready: with 0, or with 1 and the reason when it is not in time
    #[arg(long, env = "STANCHION_ONCE", value_parser = BoolishValueParser::new())]
    once: bool,

    /// How long --once waits, in seconds
    #[arg(
        long,
        env = "STANCHION_TIMEOUT",
        value_name = "SECONDS",
        default_value_t = 180
    )]
    timeout: u64,

    /// Serve the API only: no PostgreSQL, no S3, no operator, no examples
    #[arg(long, env = "STANCHION_API_ONLY", value_parser = BoolishValueParser::new(),
          conflicts_with_all = ["once", "controllers"])]
    api_only: bool,

    /// Where the kubeconfig is written as soon as the API server answers; it goes away with the server
    #[arg(long, env = "STANCHION_KUBECONFIG", value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// The port of the API server on loopback; 0 takes a free one
    #[arg(long, env = "STANCHION_PORT", value_name = "N", default_value_t = 0)]
    port: u16,

    /// Keep objects and databases in this folder between runs
    #[arg(long, env = "STANCHION_DATA", value_name = "DIR")]
    data: Option<PathBuf>,

    /// Really run containers whose image's name contains IMAGE, as this command of this machine; repeat it for more.
    /// Its words are separated by spaces; arguments and environment are the container's
    #[arg(long, env = "STANCHION_RUN", value_name = "IMAGE=COMMAND")]
    run: Vec<ImageCommand>,

    #[command(flatten)]
    controllers: Choice,
}

/// Runs until a signal comes, or with `--once` until all is ready.
pub(crate) fn run(arguments: &Arguments) -> Result<(), SandboxError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = runtime.block_on(async {
        let shutdown = crate::run::shutdown()?;
        // Dropped in reverse: the servers are gone before their directory is.
        let home = Home::open(arguments.data.as_deref())?;
        log_into(&home)?;
        let api = ApiServer::start(arguments, &home).await?;
        serve(arguments, &home, &api, shutdown).await
    });
    // What is left behind may not hold up the end.
    runtime.shutdown_background();
    ended
}

async fn serve(
    arguments: &Arguments,
    home: &Home,
    api: &ApiServer,
    shutdown: CancellationToken,
) -> Result<(), SandboxError> {
    say(&[
        WARNING.to_owned(),
        String::new(),
        format!("API server   {}", api.url()),
    ])?;
    if arguments.api_only {
        say(&[api.export()])?;
        shutdown.cancelled().await;
        return Ok(());
    }
    Box::pin(demo::run(arguments, home, api, shutdown)).await
}

/// The log goes to a file: the terminal shows what happens, not how.
fn log_into(home: &Home) -> Result<(), SandboxError> {
    let file = File::options().create(true).append(true).open(home.log())?;
    let log = logs::subscriber(
        logs::Format::Text,
        logs::DEFAULT_FILTER,
        Vec::new(),
        Mutex::new(file),
        false,
    )?;
    // It fails only where there is a log already, and there is none.
    let _ = tracing::subscriber::set_global_default(log);
    Ok(())
}
