//! Log lines: text for people, JSON for collectors.
//!
//! A line of a reconcile contains the object's namespace, name and generation, the controller, and an id that all lines
//! of this reconcile share; [`reconcile_span`] adds them.
//!
//! Our own types cannot print a secret. Some libraries can, at levels that a person may enable for another reason, so
//! `TALKATIVE` limits their levels in every filter.

mod json;

use std::{
    fmt,
    io::{self, IsTerminal as _},
    str::FromStr,
};

use thiserror::Error;
use tracing::{Span, Subscriber, error_span, level_filters::LevelFilter};
use tracing_subscriber::{
    EnvFilter, Layer, Registry,
    filter::Targets,
    fmt::{MakeWriter, format::JsonFields},
    layer::SubscriberExt as _,
    util::SubscriberInitExt as _,
};

/// The default filter. A failed request becomes the problem of an object, which is logged with its reason; the client's
/// own line about it would be a duplicate.
pub const DEFAULT_FILTER: &str = "info,kube_client::client::builder=off";

/// Libraries that may print secrets, and their maximum levels.
const TALKATIVE: [(&str, LevelFilter); 3] = [
    // A response that cannot be parsed is printed completely, even a Secret.
    ("kube_client::client", LevelFilter::ERROR),
    ("kube_client::client::builder", LevelFilter::TRACE),
    // Statements with their parameters.
    ("tokio_postgres", LevelFilter::WARN),
];

/// An additional receiver of spans and events, beside the log.
pub type ExtraLayer = Box<dyn Layer<Registry> + Send + Sync>;

/// The format of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// One JSON object per line.
    Json,
    /// Text for people.
    #[default]
    Text,
}

impl FromStr for Format {
    type Err = LogsError;

    fn from_str(word: &str) -> Result<Self, LogsError> {
        match word {
            "json" => Ok(Self::Json),
            "text" => Ok(Self::Text),
            _ => Err(LogsError::Format(word.to_owned())),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Json => "json",
            Self::Text => "text",
        })
    }
}

/// Why logging could not be started.
#[derive(Debug, Error)]
pub enum LogsError {
    /// The name of the format is not known.
    #[error("\"{0}\" is not a log format; use json or text")]
    Format(String),
    /// The filter is invalid.
    #[error("\"{filter}\" is not a log filter: {source}; write it like info,stanchion_kernel=debug")]
    Filter {
        /// The given filter.
        filter: String,
        /// The cause.
        source: tracing_subscriber::filter::ParseError,
    },
    /// Logging is already started in this process.
    #[error("the log was started twice: {0}")]
    Twice(#[from] tracing_subscriber::util::TryInitError),
}

/// Starts logging to standard error: standard output is for the result of a command.
pub fn init(format: Format, filter: &str, extra: Vec<ExtraLayer>) -> Result<(), LogsError> {
    // An empty value counts as absent, as no-color.org says.
    let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let colours = io::stderr().is_terminal() && !is_plain;
    Ok(subscriber(format, filter, extra, io::stderr, colours)?.try_init()?)
}

/// The same subscriber, not started yet, with another writer.
pub fn subscriber<W>(
    format: Format,
    filter: &str,
    extra: Vec<ExtraLayer>,
    writer: W,
    colours: bool,
) -> Result<impl Subscriber + Send + Sync + 'static, LogsError>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let filter = EnvFilter::builder()
        .parse(filter)
        .map_err(|source| LogsError::Filter {
            filter: filter.to_owned(),
            source,
        })?;
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(writer)
        .with_ansi(colours);
    let lines = match format {
        Format::Json => lines
            .event_format(json::FlatJson)
            .fmt_fields(JsonFields::new())
            .boxed(),
        Format::Text => lines.boxed(),
    };
    let talkative = Targets::new()
        .with_default(LevelFilter::TRACE)
        .with_targets(TALKATIVE);
    Ok(Registry::default()
        .with(extra)
        .with(lines.with_filter(filter))
        .with(talkative))
}

/// The span of one reconcile. It is an error span, so that every filter that allows a line also keeps its object.
pub fn reconcile_span(
    controller: &'static str,
    namespace: Option<&str>,
    name: &str,
    generation: Option<i64>,
) -> Span {
    let reconcile_id = format!("{:08x}", rand::random::<u32>());
    error_span!("reconcile", controller, namespace, name, generation, reconcile_id)
}
