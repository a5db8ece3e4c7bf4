//! Temporary directories and files that go away with this process, however it ends.

use std::{
    fs::File,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use crate::error::{Attempt, Error};

/// Servers that write into the directory are ended by the same end of file (see [`crate::process`]) and
/// may need a moment longer than the first `rm`.
const DIRECTORY: &str = r#"
read -r _
for _ in 1 2 3 4 5 6 7 8 9 10; do rm -rf -- "$1" 2>/dev/null && exit 0; sleep 0.2; done
"#;

/// Somebody else may have put another file in the place of ours, which is standard output.
const FILE: &str = r#"
read -r _
[ "$1" -ef /dev/fd/1 ] && rm -f -- "$1"
"#;

/// A shell that waits for our end and then clears away.
#[derive(Debug)]
struct Guardian(Child);

impl Guardian {
    fn of(path: &Path, script: &str, output: Stdio) -> Result<Self, Error> {
        Command::new("/bin/sh")
            .args(["-c", script, "guardian"])
            .arg(path)
            .stdin(Stdio::piped())
            .stdout(output)
            .stderr(Stdio::null())
            // Ctrl-C in a terminal goes to the foreground group: the shell must live to clean up.
            .process_group(0)
            .spawn()
            .map(Self)
            .attempting(|| format!("guard {}", path.display()))
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// A temporary directory, removed when this is dropped or when the process ends.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    _guardian: Guardian,
}

impl Scratch {
    /// A new directory whose name starts with `prefix`.
    pub fn new(prefix: &str) -> Result<Self, Error> {
        let path = tempfile::Builder::new()
            .prefix(prefix)
            .tempdir()
            .attempting(|| format!("make a temporary directory {prefix}…"))?
            .keep();
        let guardian = Guardian::of(&path, DIRECTORY, Stdio::null())?;
        Ok(Self {
            path,
            _guardian: guardian,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// A file that is of no use without this process: removed when this is dropped or when the process ends, unless
/// another one is in its place by then.
#[derive(Debug)]
pub struct Passing {
    path: PathBuf,
    _guardian: Guardian,
}

impl Passing {
    /// A file that is there.
    pub fn file(path: PathBuf) -> Result<Self, Error> {
        let file = File::open(&path).attempting(|| format!("open {}", path.display()))?;
        let guardian = Guardian::of(&path, FILE, file.into())?;
        Ok(Self {
            path,
            _guardian: guardian,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}
