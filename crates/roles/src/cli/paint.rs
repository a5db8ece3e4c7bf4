//! Colours and tables, for terminals only.

use std::fmt::Write as _;

use crate::plan::Summary;

/// Whether to use colours.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paint {
    on: bool,
}

const GREEN: &str = "32";
const RED: &str = "31";
const YELLOW: &str = "33";
const BOLD: &str = "1";

impl Paint {
    pub(super) fn new(on: bool) -> Self {
        Self { on }
    }

    fn with(self, code: &str, text: &str) -> String {
        if self.on {
            format!("\x1b[{code}m{text}\x1b[0m")
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
