//! The log of the operator under test, for failure messages.

use std::{
    collections::VecDeque,
    io,
    path::PathBuf,
    sync::{Arc, Mutex},
};

use tracing::Dispatch;
use tracing_subscriber::{EnvFilter, fmt::MakeWriter};

use crate::error::tail;

/// Number of lines that are kept in memory and that a failure shows.
const KEPT_LINES: usize = 2_000;
const SHOWN_LINES: usize = 60;

/// The operator's log: in memory, for an operator inside the test process, or in a file.
#[derive(Clone, Debug)]
pub struct OperatorLog(Source);

#[derive(Clone, Debug)]
enum Source {
    Memory(Memory),
    File(PathBuf),
}

type Memory = Arc<Mutex<VecDeque<String>>>;

impl OperatorLog {
    /// Keeps the last lines of what is logged under [`OperatorLog::dispatch`].
    pub fn in_memory() -> Self {
        Self(Source::Memory(Memory::default()))
    }

    /// The log of an operator that runs as a process.
    pub fn of_file(path: impl Into<PathBuf>) -> Self {
        Self(Source::File(path.into()))
    }

    /// A subscriber that writes into this log: run the operator's future `.with_subscriber(…)` of it.
    ///
    /// Each test has its own subscriber, not a global one, because the tests of a binary run in parallel.
    pub fn dispatch(&self) -> Dispatch {
        let filter = EnvFilter::try_from_default_env()
            .unwrap_or_else(|_| EnvFilter::new("info,stanchion=debug,hyper_util=warn,tower=warn"));
        Dispatch::new(
            tracing_subscriber::fmt()
                .with_env_filter(filter)
                .with_ansi(false)
                .with_writer(self.clone())
                .finish(),
        )
    }

    /// All lines that are kept.
    pub fn text(&self) -> String {
        match &self.0 {
            Source::Memory(lines) => lines.lock().unwrap().iter().map(String::as_str).collect(),
            Source::File(path) => {
                String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned()
            }
        }
    }

    /// The last lines, for a message.
    pub(crate) fn tail(&self) -> String {
        match &self.0 {
            Source::Memory(lines) => {
                let lines = lines.lock().unwrap();
                lines
                    .iter()
                    .skip(lines.len().saturating_sub(SHOWN_LINES))
                    .map(String::as_str)
                    .collect()
            }
            Source::File(path) => tail(path),
        }
    }
}

impl<'a> MakeWriter<'a> for OperatorLog {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl io::Write for OperatorLog {
    /// The formatter writes one event per call.
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        if let Source::Memory(lines) = &self.0 {
            let mut lines = lines.lock().unwrap();
            if lines.len() == KEPT_LINES {
                lines.pop_front();
            }
            lines.push_back(String::from_utf8_lossy(event).into_owned());
        }
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{KEPT_LINES, OperatorLog};

    #[test]
    fn the_last_lines_are_kept() {
        let log = OperatorLog::in_memory();
        tracing::dispatcher::with_default(&log.dispatch(), || {
            for number in 0..KEPT_LINES + 3 {
                tracing::info!(number, "working");
            }
        });
        let text = log.text();
        assert_eq!(text.lines().count(), KEPT_LINES);
        assert!(!text.contains("number=2\n"));
        assert!(
            log.tail()
                .ends_with(&format!("working number={}\n", KEPT_LINES + 2))
        );
    }
}
