//! Where a command's result goes: standard output, or files.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use thiserror::Error;

/// A result that could not be handed over.
#[derive(Debug, Error)]
pub(crate) enum OutputError {
    /// Standard output is broken in a way that matters.
    #[error("cannot write to standard output: {0}")]
    Stdout(io::Error),
    /// A file or its folder.
    #[error("cannot write {}: {source}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// Prints a text. A reader that has seen enough (`| head`) is no failure.
pub(crate) fn print(text: &str) -> Result<(), OutputError> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(OutputError::Stdout(error)),
        _ => Ok(()),
    }
}

/// Writes a file, and the folders above it where they are missing.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), OutputError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(path, text))
        .map_err(|source| OutputError::File {
            path: path.to_owned(),
            source,
        })
}
