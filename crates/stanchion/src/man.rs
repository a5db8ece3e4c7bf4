//! `stanchion man`: writes a manual page for each command.

use std::io;
use std::path::{Path, PathBuf};

use clap::CommandFactory as _;

use crate::cli::Cli;
use crate::output::OutputError;

/// Arguments of `stanchion man`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Folder for stanchion.1, stanchion-run.1 and the others
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Writes the pages.
pub(crate) fn run(arguments: &Arguments) -> Result<(), OutputError> {
    write(&arguments.folder).map_err(|source| OutputError::File {
        path: arguments.folder.clone(),
        source,
    })
}

fn write(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let command = Cli::command().disable_help_subcommand(true);
    clap_mangen::generate_to(command, folder)
}
