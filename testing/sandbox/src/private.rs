//! Writes files atomically and readable only by their owner, because they contain tokens and Secrets.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

/// Writes the file, or leaves the old one unchanged.
pub(crate) fn write(path: &Path, content: &str) -> io::Result<()> {
    let draft = path.with_extension("draft");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(&draft)?.write_all(content.as_bytes())?;
    fs::rename(draft, path)
}
