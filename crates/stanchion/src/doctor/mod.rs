//! `stanchion doctor`: reports problems, their severity, and the commands that fix them.
//!
//! It gathers a [`Snapshot`] with the permissions of the current user, and changes nothing. Every check is a pure
//! function of the snapshot, with an id that has a section in `docs/doctor.md`. A check without the necessary
//! permission is reported as skipped: silence would look like health.

mod checks;
mod connect;
mod gather;
mod metrics;
mod permissions;
mod scrape;
mod snapshot;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use jiff::Timestamp;
use serde::Serialize;
use thiserror::Error;

use crate::cluster::{self, Cluster, ClusterError, printable};
use crate::output::{self, OutputError};
use crate::status::{When, style};

pub(crate) use self::checks::ALL;
use self::checks::NO_METRICS;
pub(crate) use self::snapshot::Snapshot;

/// Arguments of `stanchion doctor`.
#[derive(Debug, clap::Args)]
#[group(id = "doctor")]
pub(crate) struct Arguments {
    #[command(flatten)]
    cluster: cluster::Arguments,
    /// Namespace of the operator. By default all namespaces are searched
    #[arg(long, value_name = "NS")]
    operator_namespace: Option<String>,
    /// The operator's metrics, in the format of /metrics: a file, or - for standard input
    #[arg(long, value_name = "FILE")]
    metrics: Option<PathBuf>,
    /// Also connect to the databases and buckets that the objects name, from your machine, with the Secrets that you may
    /// read. No value of a Secret is printed
    #[arg(long)]
    connect: bool,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text", value_enum)]
    output: Format,
    /// Colours: auto (on a terminal), always or never. `NO_COLOR` means never
    #[arg(long, value_name = "WHEN", default_value = "auto", value_enum)]
    color: When,
}

/// The output format of the findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
}

/// Why nothing could be checked.
#[derive(Debug, Error)]
pub(crate) enum DoctorError {
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error("cannot read the metrics in {}: {source}", path.display())]
    Metrics {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    #[error("cannot write the findings as JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error("cannot start: {0}")]
    System(#[from] io::Error),
}

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
    /// Something does not work.
    Error,
    /// Something will fail, or works worse than it could.
    Warning,
    /// Informational.
    Info,
}

impl Severity {
    fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }
}

/// A problem.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Finding {
    pub(crate) severity: Severity,
    pub(crate) check: &'static str,
    /// The subject, such as `Deployment stanchion-system/stanchion`.
    pub(crate) subject: String,
    /// The description of the problem.
    pub(crate) message: String,
    /// The command that fixes it, or shows more.
    pub(crate) remedy: String,
}

/// A check that could not run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Skipped {
    pub(crate) check: &'static str,
    pub(crate) why: String,
}

/// The result of all checks.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Diagnosis {
    /// Whether there is neither an error nor a warning.
    pub(crate) ok: bool,
    /// The number of checks that ran.
    pub(crate) checked: usize,
    /// The worst first.
    pub(crate) findings: Vec<Finding>,
    pub(crate) skipped: Vec<Skipped>,
}

/// Runs the checks and prints the findings. The exit code is 1 if there is an error.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, DoctorError> {
    let metrics = arguments.metrics.as_deref().map(read).transpose()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let diagnosis = runtime.block_on(async {
        let cluster = arguments.cluster.connect().await?;
        let looked = look(&cluster, arguments.operator_namespace.as_deref(), metrics);
        let mut snapshot = Box::pin(looked).await?;
        if let (true, Ok(objects)) = (arguments.connect, &snapshot.objects) {
            snapshot.contacts = Box::pin(connect::contacts(&cluster, objects)).await;
        }
        Ok::<_, DoctorError>(diagnose(&snapshot))
    })?;
    let text = match arguments.output {
        Format::Json => serde_json::to_string_pretty(&diagnosis)? + "\n",
        Format::Text => render(&diagnosis, arguments.color.decide()),
    };
    output::print(&text)?;
    let failed = diagnosis
        .findings
        .iter()
        .any(|finding| finding.severity == Severity::Error);
    Ok(if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// Gathers the snapshot for the checks.
pub(crate) async fn look(
    cluster: &Cluster,
    operator_namespace: Option<&str>,
    metrics: Option<String>,
) -> Result<Snapshot, ClusterError> {
    let mut snapshot = Box::pin(gather::gather(cluster, operator_namespace, Timestamp::now())).await?;
    if let Some(text) = metrics {
        snapshot.metrics = Ok(text);
    }
    Ok(snapshot)
}

fn read(path: &Path) -> Result<String, DoctorError> {
    let mut text = String::new();
    let done = if path == Path::new("-") {
        io::stdin().read_to_string(&mut text).map(drop)
    } else {
        std::fs::read_to_string(path).map(|read| text = read)
    };
    done.map(|()| text).map_err(|source| DoctorError::Metrics {
        path: path.to_owned(),
        source,
    })
}

/// Runs every check.
pub(crate) fn diagnose(snapshot: &Snapshot) -> Diagnosis {
    let mut diagnosis = Diagnosis::default();
    for check in ALL {
        match (check.run)(snapshot) {
            Ok(faults) => {
                diagnosis.checked += 1;
                // Everything may quote an object, whose author may not write to the terminal of this person.
                diagnosis.findings.extend(faults.into_iter().map(|fault| Finding {
                    severity: check.severity,
                    check: check.id,
                    subject: printable(&fault.subject),
                    message: printable(&fault.message),
                    remedy: printable(&fault.remedy),
                }));
            }
            Err(why) => diagnosis.skipped.push(Skipped {
                check: check.id,
                why: printable(&why),
            }),
        }
    }
    diagnosis.findings.sort();
    diagnosis.ok = diagnosis
        .findings
        .iter()
        .all(|finding| finding.severity == Severity::Info);
    diagnosis
}

/// The findings as text for people.
pub(crate) fn render(diagnosis: &Diagnosis, paint: bool) -> String {
    let mut text = String::new();
    for finding in &diagnosis.findings {
        let code = match finding.severity {
            Severity::Error => "31",
            Severity::Warning => "33",
            Severity::Info => "36",
        };
        let _ = writeln!(
            text,
            "{} [{}] {}: {}\n    {}",
            style(finding.severity.word(), code, paint),
            finding.check,
            finding.subject,
            finding.message,
            finding.remedy
        );
    }
    // Many checks are skipped for the same reason.
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    let (on_request, skipped): (Vec<&Skipped>, Vec<&Skipped>) = diagnosis
        .skipped
        .iter()
        .partition(|skipped| skipped.why == NO_METRICS);
    for skipped in skipped {
        match reasons.iter_mut().find(|(why, _)| *why == skipped.why) {
            Some((_, checks)) => checks.push(skipped.check),
            None => reasons.push((&skipped.why, vec![skipped.check])),
        }
    }
    for (why, checks) in reasons {
        let _ = writeln!(
            text,
            "{} {}: {why}",
            style("skipped", "2", paint),
            checks.join(", ")
        );
    }
    let count = |severity: Severity| {
        let of = diagnosis
            .findings
            .iter()
            .filter(|finding| finding.severity == severity);
        of.count()
    };
    let mut checks = format!("{} checks", diagnosis.checked);
    if !on_request.is_empty() {
        let _ = write!(checks, ", {} more with --metrics", on_request.len());
    }
    if diagnosis.findings.is_empty() {
        let _ = writeln!(text, "{} ({checks})", style("ok", "32", paint));
    } else {
        let _ = writeln!(
            text,
            "{} errors, {} warnings, {} infos ({checks}; docs/doctor.md explains each)",
            count(Severity::Error),
            count(Severity::Warning),
            count(Severity::Info),
        );
    }
    text
}
