//! Temporary directories and files that are removed when this process ends, however it ends.

use std::{
    fs::File,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use crate::error::{Attempt, Error};

/// Servers that write into the directory are ended by the same end of file (see [`crate::process`]) and may take longer
/// than the first `rm`.
const DIRECTORY: &str = r#"
read -r _
for _ in 1 2 3 4 5 6 7 8 9 10; do rm -rf -- "$1" 2>/dev/null && exit 0; sleep 0.2; done
"#;

/// Another process may have replaced our file, which is standard output.
const FILE: &str = r#"
read -r _
[ "$1" -ef /dev/fd/1 ] && rm -f -- "$1"
"#;

/// A shell that waits for the end of this process and then cleans up.
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

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// A file that is useless without this process. It is removed when this is dropped or when the process ends, unless
/// another file has replaced it.
#[derive(Debug)]
pub struct Passing {
    path: PathBuf,
    _guardian: Guardian,
}

impl Passing {
    /// Takes an existing file.
    pub fn file(path: PathBuf) -> Result<Self, Error> {
        let file = File::open(&path).attempting(|| format!("open {}", path.display()))?;
        let guardian = Guardian::of(&path, FILE, file.into())?;
        Ok(Self {
            path,
            _guardian: guardian,
        })
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}
