//! Shows a scene: redrawn in a terminal, line by line elsewhere.

mod lines;
mod picture;

use std::io::IsTerminal as _;
use std::time::Duration;

use super::scene::Scene;
use crate::output::{self, OutputError};

/// Prints lines.
pub(super) fn say(lines: &[String]) -> Result<(), OutputError> {
    output::print(&format!("{}\n", lines.join("\n")))
}

/// A way to show a changing scene.
pub(super) enum View {
    /// The picture in the terminal, which is replaced as a whole; its number of lines.
    Picture(usize),
    /// Only the changes.
    Lines,
}

impl View {
    /// A picture, if standard output is a terminal.
    pub(super) fn new() -> Self {
        if std::io::stdout().is_terminal() {
            Self::Picture(0)
        } else {
            Self::Lines
        }
    }

    /// Shows the current scene after the previous one.
    pub(super) fn show(&mut self, before: &Scene, now: &Scene, elapsed: Duration) -> Result<(), OutputError> {
        match self {
            Self::Picture(height) => {
                let lines = picture::draw(now, elapsed);
                let text = picture::over(*height, &lines);
                *height = lines.len();
                output::print(&text)
            }
            Self::Lines => {
                let lines = lines::changes(before, now, elapsed);
                if lines.is_empty() { Ok(()) } else { say(&lines) }
            }
        }
    }
}
