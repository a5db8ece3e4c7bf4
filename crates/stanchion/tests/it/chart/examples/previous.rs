//! The chart before its last change.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use stanchion_testkit::scratch::Scratch;

use crate::operator::text;

/// Why there is no previous chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// A source archive, or a copy of the files.
    NoClone,
    /// The history has no earlier chart.
    FirstChart,
    /// The clone has only the last commits.
    Shallow,
    /// git or tar failed although the commit exists.
    Failed,
}

impl Missing {
    /// For the list of skipped tests. In the workflow, a clone that lacks its history is a mistake of the workflow, and a test
    /// that it skips looks like one that passes.
    pub(super) fn why(self, is_ci: bool) -> &'static str {
        let why = match self {
            Self::NoClone => "this is no clone",
            Self::FirstChart => "no earlier commit has the chart",
            Self::Shallow => "the clone is shallow; fetch the whole history (fetch-depth: 0)",
            Self::Failed => "git archive or tar failed",
        };
        assert!(
            !is_ci || matches!(self, Self::NoClone | Self::FirstChart),
            "{why}"
        );
        why
    }
}

/// The chart of the repository at `root` before its last change, unpacked into a directory.
pub(super) fn unpack(root: &Path, scratch: &Scratch) -> Result<PathBuf, Missing> {
    let is_shallow = said(root, &["rev-parse", "--is-shallow-repository"]).ok_or(Missing::NoClone)?;
    // A commit at the end of a shallow history looks like the first one.
    let missing = if is_shallow == "true" {
        Missing::Shallow
    } else {
        Missing::FirstChart
    };
    let commit = if said(root, &["diff", "--quiet", "HEAD", "--", "charts"]).is_some() {
        let last = said(root, &["log", "-1", "--format=%H", "--", "charts/stanchion"]);
        format!("{}^", last.ok_or(missing)?)
    } else {
        "HEAD".to_owned()
    };
    said(root, &["cat-file", "-e", &format!("{commit}:charts/stanchion")]).ok_or(missing)?;
    let archive = scratch.path().join("chart.tar");
    let words = [
        "archive",
        "-o",
        archive.to_str().unwrap(),
        &commit,
        "charts/stanchion",
    ];
    said(root, &words).ok_or(Missing::Failed)?;
    let unpacked = Command::new("tar")
        .arg("-xf")
        .arg(&archive)
        .arg("-C")
        .arg(scratch.path())
        .status();
    match unpacked {
        Ok(status) if status.success() => Ok(scratch.path().join("charts/stanchion")),
        _ => Err(Missing::Failed),
    }
}

/// The output of git; `None` if it fails.
fn said(root: &Path, words: &[&str]) -> Option<String> {
    let output = git(root, words)?;
    output
        .status
        .success()
        .then(|| text(&output.stdout).trim().to_owned())
}

fn git(root: &Path, words: &[&str]) -> Option<Output> {
    Command::new("git")
        .arg("-C")
        .arg(root)
        .args(words)
        // A hook of git sets them, for another repository.
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .env_remove("GIT_INDEX_FILE")
        .stderr(Stdio::null())
        .output()
        .ok()
}

/// A repository whose chart has changed once: its clones, and what each has.
#[test]
fn a_shallow_clone_is_not_skipped_in_ci() {
    let scratch = Scratch::new("stanchion-clones-").unwrap();
    let place = |name: &str| scratch.path().join(name);
    let run = |root: &Path, words: &[&str]| assert!(said(root, words).is_some(), "git {words:?}");
    let origin = place("origin");
    let chart = origin.join("charts/stanchion");
    std::fs::create_dir_all(&chart).unwrap();
    assert_eq!(unpack(&origin, &scratch), Err(Missing::NoClone));
    run(&origin, &["init", "-q"]);
    let commit = |version: &str| {
        std::fs::write(chart.join("Chart.yaml"), version).unwrap();
        run(&origin, &["add", "."]);
        let author = ["-c", "user.name=x", "-c", "user.email=x@example.com"];
        run(&origin, &[&author[..], &["commit", "-q", "-m", version]].concat());
    };
    commit("1");
    assert_eq!(unpack(&origin, &scratch), Err(Missing::FirstChart));
    commit("2");
    let url = format!("file://{}", origin.display());
    let clones: [(&str, &[&str]); 2] = [("whole", &[]), ("shallow", &["--depth=1"])];
    for (name, depth) in clones {
        let to = place(name);
        let words = [&["clone", "-q"], depth, &[&url, to.to_str().unwrap()]].concat();
        run(scratch.path(), &words);
    }
    let previous = unpack(&place("whole"), &scratch).unwrap();
    assert_eq!(std::fs::read_to_string(previous.join("Chart.yaml")).unwrap(), "1");
    assert_eq!(unpack(&place("shallow"), &scratch), Err(Missing::Shallow));

    for (missing, fails) in [
        (Missing::NoClone, false),
        (Missing::FirstChart, false),
        (Missing::Shallow, true),
        (Missing::Failed, true),
    ] {
        assert!(!missing.why(false).is_empty());
        let in_ci = std::panic::catch_unwind(|| missing.why(true));
        assert_eq!(in_ci.is_err(), fails, "{missing:?}");
    }
}
