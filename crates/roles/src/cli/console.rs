//! Streams and environment of the command.

use std::io::{IsTerminal as _, Write};

use super::paint::Paint;

/// Streams and environment of one run.
pub struct Console<'a> {
    out: &'a mut (dyn Write + Send),
    err: &'a mut (dyn Write + Send),
    /// Reads an environment variable.
    env: &'a (dyn Fn(&str) -> Option<String> + Sync),
    out_is_terminal: bool,
    err_is_terminal: bool,
}

impl<'a> Console<'a> {
    /// Uses the given streams, as if they were pipes.
    pub fn new(
        out: &'a mut (dyn Write + Send),
        err: &'a mut (dyn Write + Send),
        env: &'a (dyn Fn(&str) -> Option<String> + Sync),
    ) -> Self {
        Self {
            out,
            err,
            env,
            out_is_terminal: false,
            err_is_terminal: false,
        }
    }

    /// Marks the streams as those of the process, which may be terminals.
    #[must_use]
    pub fn of_the_process(mut self) -> Self {
        self.out_is_terminal = std::io::stdout().is_terminal();
        self.err_is_terminal = std::io::stderr().is_terminal();
        self
    }

    pub(super) fn variable(&self, name: &str) -> Option<String> {
        (self.env)(name)
    }

    /// Whether a variable has a value; an empty one counts as absent, as no-color.org says it of `NO_COLOR`.
    fn is_set(&self, name: &str) -> bool {
        self.variable(name).is_some_and(|value| !value.is_empty())
    }

    /// Whether to log every statement, as `RUST_LOG` requests.
    pub(super) fn is_verbose(&self) -> bool {
        self.variable("RUST_LOG")
            .is_some_and(|filter| filter.contains("debug") || filter.contains("trace"))
    }

    /// Colours for stdout, if it is a terminal that supports them.
    pub(super) fn paint(&self) -> Paint {
        Paint::new(self.out_is_terminal && !self.is_set("NO_COLOR"))
    }

    pub(super) fn is_terminal(&self) -> bool {
        self.out_is_terminal
    }

    pub(super) fn shows_progress(&self) -> bool {
        self.err_is_terminal
    }

    /// Writes a result to stdout. A closed pipe is not an error: the reader has seen enough.
    pub(super) fn print(&mut self, text: &str) {
        let _ = self
            .out
            .write_all(text.as_bytes())
            .and_then(|()| self.out.flush());
    }

    /// Writes a line to stderr.
    pub(super) fn error(&mut self, text: &str) {
        let _ = writeln!(self.err, "{text}").and_then(|()| self.err.flush());
    }

    pub(super) fn warn(&mut self, text: &str) {
        self.error(&format!("Warning: {text}"));
    }
}
