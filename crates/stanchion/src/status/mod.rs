//! `stanchion status`: the objects that the operator manages, the worst first; with a name, one object as a tree.
//!
//! It reads with the permissions of the current user, and reports what it may not read. `stanchion-fleet` reads and
//! evaluates; this module renders.

mod colour;
mod follow;
mod table;
#[cfg(test)]
mod tests;
mod tree;

use std::io::{self, IsTerminal as _};
use std::process::ExitCode;
use std::slice;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use stanchion_fleet::assess::{self, Row};
use stanchion_fleet::kinds::{self, Kind, Subject};
use stanchion_fleet::{detail, read};
use thiserror::Error;

use crate::cluster::{self, Cluster, ClusterError};
use crate::output::{self, OutputError};
use crate::yaml;

pub(crate) use self::colour::{When, style};
pub(crate) use stanchion_fleet::kinds::with_status;
pub(crate) use stanchion_fleet::read::Unread;

/// Arguments of `stanchion status`.
#[derive(Debug, clap::Args)]
#[group(id = "status")]
pub(crate) struct Arguments {
    /// Kind, or one object: KIND or KIND/NAME, such as `supabaseprojects` or `pguser/alice`. Default: all objects
    #[arg(value_name = "KIND[/NAME]")]
    subject: Option<String>,
    #[command(flatten)]
    cluster: cluster::Arguments,
    /// Show every change until Ctrl-C
    #[arg(short, long)]
    watch: bool,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table", value_enum)]
    output: Format,
    /// Colours: auto (on a terminal), always or never. `NO_COLOR` means never
    #[arg(long, value_name = "WHEN", default_value = "auto", value_enum)]
    color: When,
}

/// The output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    Table,
    Wide,
    Json,
    Yaml,
}

/// Why there is no output.
#[derive(Debug, Error)]
pub(crate) enum StatusError {
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error("{0}")]
    Subject(String),
    #[error("cannot write the answer as JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("cannot write the answer as YAML: {0}")]
    Yaml(#[from] serde_saphyr::ser::Error),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error("cannot start: {0}")]
    System(#[from] io::Error),
}

/// Everything that was read, and what was not.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Overview {
    /// The worst first.
    pub(crate) objects: Vec<Row>,
    /// What could not be read.
    pub(crate) unreadable: Vec<Unread>,
}

/// Prints the status, once or until Ctrl-C.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, StatusError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let subject = arguments.subject.as_deref().map(Subject::parse).transpose();
    let subject = subject.map_err(StatusError::Subject)?;
    runtime.block_on(async {
        let cluster = arguments.cluster.connect().await?;
        cluster.version().await?;
        let view = View::of(arguments);
        if arguments.watch {
            follow::run(&cluster, subject.as_ref(), &view).await?;
        } else {
            output::print(&answer(&cluster, subject.as_ref(), &view).await?)?;
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// Options of the output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    pub(crate) format: Format,
    pub(crate) paint: bool,
    /// The width of the terminal; `None` for no limit.
    pub(crate) width: Option<usize>,
}

impl View {
    fn of(arguments: &Arguments) -> Self {
        Self {
            format: arguments.output,
            paint: arguments.color.decide(),
            width: colour::width(),
        }
    }
}

/// The output as text.
async fn answer(cluster: &Cluster, subject: Option<&Subject>, view: &View) -> Result<String, StatusError> {
    let now = Timestamp::now();
    if let Some(Subject {
        kind,
        name: Some(name),
    }) = subject
    {
        let object = read::one(cluster, kind, name)
            .await
            .map_err(StatusError::Subject)?;
        let detail = detail::of(&object, now);
        return Ok(match view.format {
            Format::Json => json(&detail)?,
            Format::Yaml => yaml::document(&detail)?,
            Format::Table | Format::Wide => tree::render(&detail, view),
        });
    }
    let overview = overview(cluster, subject.map(|subject| &subject.kind), now).await;
    render(&overview, cluster.namespace.is_none(), view)
}

/// The objects of this kind, or of all kinds.
pub(crate) async fn overview(cluster: &Cluster, kind: Option<&Kind>, now: Timestamp) -> Overview {
    let kinds = match kind {
        Some(kind) => slice::from_ref(kind),
        None => with_status(),
    };
    let (objects, unreadable) = read::all(cluster, kinds).await;
    let listed: Vec<(&Kind, &Value)> = objects.iter().map(|(of, object)| (of, object)).collect();
    Overview {
        objects: assess::rows(&listed, now, kind.map(Kind::plural)),
        unreadable,
    }
}

fn render(overview: &Overview, with_namespace: bool, view: &View) -> Result<String, StatusError> {
    Ok(match view.format {
        Format::Json => json(overview)?,
        Format::Yaml => yaml::document(overview)?,
        Format::Table | Format::Wide => table::render(overview, with_namespace, view),
    })
}

fn json(value: &impl Serialize) -> Result<String, serde_json::Error> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}

/// Whether standard output is a terminal.
pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}
