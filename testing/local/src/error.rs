//! Errors of local servers. Every message says what was attempted, on what, and what to do about it.

use std::{fmt::Write as _, io, path::Path, process::Output};

/// Why something is not available.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Something is missing on this machine.
    #[error("{what} not found; {remedy}")]
    Missing {
        /// What was looked for, and where.
        what: String,
        /// What the reader should do.
        remedy: String,
    },
    /// A tool ran and failed.
    #[error("{command} failed ({outcome}): {output}")]
    Command {
        /// The tool.
        command: String,
        /// Its exit status.
        outcome: String,
        /// What it printed.
        output: String,
    },
    /// A server did not start.
    #[error("{what} did not start: {why}\n{log}")]
    Start {
        /// The server.
        what: String,
        /// Exit status or last answer.
        why: String,
        /// The end of its log.
        log: String,
    },
    /// A file operation failed.
    #[error("{what}: {source}")]
    Io {
        /// What was attempted, on which path.
        what: String,
        /// The cause.
        source: io::Error,
    },
}

/// Adds the attempted action to an [`io::Error`].
pub trait Attempt<T> {
    /// `what` has the form "verb path".
    fn attempting(self, what: impl FnOnce() -> String) -> Result<T, Error>;
}

impl<T> Attempt<T> for io::Result<T> {
    fn attempting(self, what: impl FnOnce() -> String) -> Result<T, Error> {
        self.map_err(|source| Error::Io { what: what(), source })
    }
}

/// Turns an unsuccessful tool run into an error with the tool's output.
pub fn checked(command: &str, output: &Output) -> Result<String, Error> {
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(stdout);
    }
    let mut said = stdout;
    let _ = write!(said, "{}", String::from_utf8_lossy(&output.stderr));
    Err(Error::Command {
        command: command.to_owned(),
        outcome: output.status.to_string(),
        output: said,
    })
}

/// The last lines of a log file, for messages.
pub fn tail(log: &Path) -> String {
    const LINES: usize = 25;
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let skipped = lines.len().saturating_sub(LINES);
    lines.into_iter().skip(skipped).collect::<Vec<_>>().join("\n")
}
