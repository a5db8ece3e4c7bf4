//! The chart before its last change.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use stanchion_testkit::scratch::Scratch;

use super::super::chart;
use crate::operator::text;

/// The chart before its last change, unpacked into a directory. `None` if this is no clone with that commit, such as a
/// source archive or a shallow clone.
pub(super) fn unpack(scratch: &Scratch) -> Option<PathBuf> {
    let root = chart().join("../..");
    let commit = if git(&root, &["diff", "--quiet", "HEAD", "--", "charts"])?
        .status
        .success()
    {
        let last = git(&root, &["log", "-1", "--format=%H", "--", "charts/stanchion"])?;
        format!("{}^", text(&last.stdout).trim())
    } else {
        "HEAD".to_owned()
    };
    let archive = scratch.path().join("chart.tar");
    let words = ["archive", "-o", archive.to_str()?, &commit, "charts/stanchion"];
    if !git(&root, &words)?.status.success() {
        return None;
    }
    let unpacked = Command::new("tar")
        .arg("-xf")
        .arg(&archive)
        .arg("-C")
        .arg(scratch.path())
        .status();
    unpacked
        .ok()?
        .success()
        .then(|| scratch.path().join("charts/stanchion"))
}

fn git(root: &Path, words: &[&str]) -> Option<Output> {
    Command::new("git")
        .arg("-C")
        .arg(root)
        .args(words)
        .stderr(Stdio::null())
        .output()
        .ok()
}
