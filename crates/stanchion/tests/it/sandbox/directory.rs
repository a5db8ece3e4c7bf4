//! A sandbox in a separate directory, so that leftovers are visible.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Output;

use stanchion_testkit::process::{Launch, Process, Signal};
use stanchion_testkit::scratch::Scratch;
use stanchion_testkit::{unique, wait};
use tokio::net::TcpListener;

use super::path;
use crate::DEADLINE;
use crate::operator::{BINARY, command, text};

/// A directory for everything that the sandbox creates, so that leftovers are visible.
pub(super) struct Place {
    scratch: Scratch,
}

impl Place {
    pub(super) fn new() -> Self {
        let scratch = Scratch::new("stanchion-it-").unwrap();
        let place = Self { scratch };
        fs::create_dir(place.temporary()).unwrap();
        // As root the sandbox runs PostgreSQL under another account, which needs access.
        for folder in [place.scratch.path(), &place.temporary()] {
            fs::set_permissions(folder, Permissions::from_mode(0o711)).unwrap();
        }
        place
    }

    pub(super) fn temporary(&self) -> PathBuf {
        self.scratch.path().join("tmp")
    }

    pub(super) fn file(&self, name: &str) -> String {
        self.scratch.path().join(name).display().to_string()
    }

    /// A free port.
    pub(super) async fn port(&self) -> String {
        let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
        free.local_addr().unwrap().port().to_string()
    }

    /// Runs it to its end.
    pub(super) async fn run(&self, arguments: &[&str]) -> Output {
        let mut command = command([&["sandbox"], arguments].concat());
        command.env("TMPDIR", self.temporary());
        tokio::task::spawn_blocking(move || command.output().unwrap())
            .await
            .unwrap()
    }

    /// Starts it.
    pub(super) fn start(&self, arguments: &[&str]) -> Running {
        self.start_with(arguments, &path())
    }

    pub(super) fn start_with(&self, arguments: &[&str], path: &OsStr) -> Running {
        let process = Launch::new(BINARY, self.file(&unique::name("output")))
            .args(["sandbox"])
            .args(arguments.iter().copied())
            .env("TMPDIR", self.temporary())
            .env("PATH", path)
            .spawn()
            .unwrap();
        Running { process }
    }

    /// Waits until no file and no process of the sandbox is left.
    pub(super) async fn is_clean(&self) {
        wait::eventually(DEADLINE, "nothing to be left behind", async || {
            let mut left: Vec<String> = fs::read_dir(self.temporary())
                .unwrap()
                .map(|entry| entry.unwrap().path().display().to_string())
                .collect();
            left.extend(processes_of(&self.temporary()));
            if left.is_empty() {
                Ok(())
            } else {
                Err(left.join(", "))
            }
        })
        .await;
    }
}

/// Processes that were started with a path in this directory, or work in it: server processes have other titles.
pub(super) fn processes_of(folder: &Path) -> Vec<String> {
    let folder = folder.display().to_string();
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| {
            let process = entry.unwrap().path();
            let words = fs::read(process.join("cmdline")).ok()?;
            let place = fs::read_link(process.join("cwd")).unwrap_or_default();
            Some(format!(
                "{} in {}",
                text(&words).replace('\0', " "),
                place.display()
            ))
        })
        .filter(|process| process.contains(&folder))
        .collect()
}

/// A running sandbox. Dropping the value ends it.
pub(super) struct Running {
    process: Process,
}

impl Running {
    /// Waits until it has printed this.
    pub(super) async fn says(&self, words: &str) {
        wait::eventually(DEADLINE, words, async || {
            let said = self.process.log();
            if said.contains(words) { Ok(()) } else { Err(said) }
        })
        .await;
    }

    /// The line that it has printed with all of these words.
    pub(super) fn line(&self, words: &[&str]) -> String {
        let said = self.process.log();
        said.lines()
            .find(|line| words.iter().all(|word| line.contains(word)))
            .unwrap_or_else(|| panic!("no line with {words:?} in:\n{said}"))
            .trim()
            .to_owned()
    }

    /// Runs a command in the shell of a user who has followed the first hint.
    pub(super) async fn shell(&self, line: &str) -> Result<String, String> {
        let script = format!("{}\n{line}", self.line(&["export KUBECONFIG="]));
        let output = tokio::process::Command::new("bash")
            .args(["-c", &script])
            .env("PATH", path())
            .kill_on_drop(true)
            .output()
            .await
            .unwrap();
        if output.status.success() {
            Ok(text(&output.stdout).trim().to_owned())
        } else {
            Err(text(&output.stderr))
        }
    }

    /// Runs the command with these words.
    pub(super) async fn follow(&self, words: &[&str]) -> Result<String, String> {
        self.shell(&self.line(words)).await
    }

    pub(super) async fn end(mut self, signal: Signal) -> Option<i32> {
        self.process.signal(signal);
        let ended = tokio::time::timeout(DEADLINE, self.process.wait()).await;
        ended
            .unwrap_or_else(|_| panic!("it does not end:\n{}", self.process.log()))
            .code()
    }
}
