//! Colours, and the width of the terminal.

use std::env;

use super::assess::State;
use super::is_terminal;

/// When the output has colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum When {
    Auto,
    Always,
    Never,
}

impl When {
    /// Whether the output has colours. `NO_COLOR` works as no-color.org describes it: any non-empty value counts.
    pub(crate) fn decide(self) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => {
                let set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
                let dumb = env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
                is_terminal() && !set("NO_COLOR") && !dumb
            }
        }
    }
}

/// The columns of the terminal; `None` if standard output is not one.
pub(super) fn width() -> Option<usize> {
    if !is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    (size.ws_col > 0).then(|| usize::from(size.ws_col))
}

/// The text in the colour of a state.
pub(crate) fn paint(text: &str, state: State, paint: bool) -> String {
    let code = match state {
        State::Failed => "31",
        State::NotReady | State::Unknown => "33",
        State::Reconciling | State::Deleting => "36",
        State::Suspended => "2",
        State::Ready => "32",
    };
    style(text, code, paint)
}

/// The text with this SGR code.
pub(crate) fn style(text: &str, code: &str, paint: bool) -> String {
    if paint {
        format!("\x1b[{code}m{text}\x1b[0m")
    } else {
        text.to_owned()
    }
}
