//! Streams and environment of the command, and the colours of a terminal.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write};

use anstyle::{AnsiColor, Style};
use stanchion_roles::plan::Summary;

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
    pub(crate) fn of_the_process(mut self) -> Self {
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
        Paint {
            on: self.out_is_terminal && !self.is_set("NO_COLOR"),
        }
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

/// Whether to use colours.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paint {
    on: bool,
}

const GREEN: Style = AnsiColor::Green.on_default();
const RED: Style = AnsiColor::Red.on_default();
const YELLOW: Style = AnsiColor::Yellow.on_default();
const BOLD: Style = Style::new().bold();

impl Paint {
    fn with(self, style: Style, text: &str) -> String {
        if self.on {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }

    /// Colours each statement of a script by its effect.
    pub(super) fn script(self, script: String) -> String {
        if !self.on {
            return script;
        }
        let lines = script.lines().map(|line| match line.split_whitespace().next() {
            Some("CREATE" | "GRANT") => self.with(GREEN, line),
            Some("REVOKE" | "DROP" | "REASSIGN") => self.with(RED, line),
            Some("ALTER") if line.contains(" REVOKE ") => self.with(RED, line),
            Some("ALTER") if line.contains(" GRANT ") => self.with(GREEN, line),
            _ => self.with(YELLOW, line),
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// The summary of a plan: lines as pgroles writes them, or a table on a terminal.
    pub(super) fn summary(self, summary: &Summary, heading: &str) -> String {
        if !self.on {
            return summary.render(heading);
        }
        let mut text = format!(
            "{}\n",
            self.with(BOLD, &format!("{heading}: {} change(s)", summary.total()))
        );
        for (label, count) in summary.lines().filter(|(_, count)| *count > 0) {
            let colour = if label.contains("revoke") || label.contains("remove") || label.contains("drop") {
                RED
            } else if label.contains("create") || label.contains("add") || label.ends_with("set") {
                GREEN
            } else {
                YELLOW
            };
            let _ = writeln!(text, "  {}  {label}", self.with(colour, &format!("{count:>7}")));
        }
        text
    }
}
