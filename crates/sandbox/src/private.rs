//! Files that only their owner can read, for they hold tokens and Secrets, and that are whole from the moment on that
//! they are there.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Writes the file, or leaves the old one.
pub(crate) fn write(path: &Path, content: &str) -> io::Result<()> {
    // The last save of a sandbox may come while its last but one is still being written.
    static ONE_DRAFT_A_TIME: Mutex<()> = Mutex::new(());
    let _writing = ONE_DRAFT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let draft = path.with_extension("draft");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(&draft)?.write_all(content.as_bytes())?;
    fs::rename(draft, path)
}
