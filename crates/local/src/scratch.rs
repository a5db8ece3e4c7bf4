//! Temporary directories that go away with this process, however it ends.

use std::{
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use crate::error::{Attempt, Error};

/// Servers that write into the directory are ended by the same end of file (see [`crate::process`]) and
/// may need a moment longer than the first `rm`.
const GUARDIAN: &str = r#"
read -r _
for _ in 1 2 3 4 5 6 7 8 9 10; do rm -rf -- "$1" 2>/dev/null && exit 0; sleep 0.2; done
"#;

/// A temporary directory, removed when this is dropped or when the process ends.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    guardian: Child,
}

impl Scratch {
    /// A new directory whose name starts with `prefix`.
    pub fn new(prefix: &str) -> Result<Self, Error> {
        let path = tempfile::Builder::new()
            .prefix(prefix)
            .tempdir()
            .attempting(|| format!("make a temporary directory {prefix}…"))?
            .keep();
        let guardian = Command::new("/bin/sh")
            .args(["-c", GUARDIAN, "guardian"])
            .arg(&path)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .attempting(|| format!("guard {}", path.display()))?;
        Ok(Self { path, guardian })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(self.guardian.stdin.take());
        let _ = self.guardian.wait();
    }
}
