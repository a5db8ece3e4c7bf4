//! The output of a command: standard output, or files.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why a result could not be written.
#[derive(Debug, Error)]
pub(crate) enum OutputError {
    /// Writing to standard output failed.
    #[error("cannot write to standard output: {0}")]
    Stdout(io::Error),
    /// A file or its folder could not be written.
    #[error("cannot write {}: {source}", path.display())]
    File {
        /// The path.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

/// Prints a text. A reader that closes the pipe (`| head`) is not an error.
pub(crate) fn print(text: &str) -> Result<(), OutputError> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(OutputError::Stdout(error)),
        _ => Ok(()),
    }
}

/// Writes a file, and creates missing folders above it.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), OutputError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(path, text))
        .map_err(|source| OutputError::File {
            path: path.to_owned(),
            source,
        })
}
