//! `stanchion completion`: completion scripts for shells.

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::output::{self, OutputError};

/// Arguments of `stanchion completion`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Name of the shell
    #[arg(value_name = "SHELL", value_enum)]
    shell: Shell,
}

/// Prints the script.
pub(crate) fn run(arguments: &Arguments) -> Result<(), OutputError> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "stanchion", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}
