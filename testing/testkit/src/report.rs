//! What a run used and what it skipped.
//!
//! The harness hides the output of a test that passes, so a skipped suite would go unnoticed. Every process of a run
//! appends its lines to one file instead, and `test-bed` prints them at the end.

use std::{
    collections::BTreeSet,
    env, fs,
    io::{self, Write},
    path::Path,
};

/// The file. Without it nothing is recorded.
pub const VARIABLE: &str = "STANCHION_TEST_REPORT";

/// Records what tests ran against: `used("postgres", "15.14")`.
pub(crate) fn used(what: &str, version: &str) {
    add(&format!("{what}: {version}"));
}

/// Records that a suite, or a part of it, did not run.
pub fn skipped(suite: &str, why: &str) {
    eprintln!("skipped: {suite}: {why}");
    add(&format!("skipped: {suite}: {why}"));
}

/// The name of the current test, which the test harness gives to its thread. It does not when tests run one at a time.
pub fn this_test() -> String {
    let thread = std::thread::current();
    let name = thread.name().filter(|name| *name != "main");
    name.unwrap_or("a test").to_owned()
}

/// Each line once, in order. If nothing was skipped, a line says so: an empty list could mean anything.
pub fn lines(file: &Path) -> io::Result<Vec<String>> {
    let text = fs::read_to_string(file)?;
    let mut lines: BTreeSet<&str> = text.lines().collect();
    if !lines.iter().any(|line| line.starts_with("skipped: ")) {
        lines.insert("skipped: no suite");
    }
    Ok(lines.into_iter().map(str::to_owned).collect())
}

fn add(line: &str) {
    if let Some(file) = env::var_os(VARIABLE) {
        append(Path::new(&file), line)
            .unwrap_or_else(|error| panic!("{VARIABLE}={}: {error}", file.display()));
    }
}

/// A single write, so that lines of several processes do not mix.
fn append(file: &Path, line: &str) -> io::Result<()> {
    fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(file)?
        .write_all(format!("{line}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::{append, lines};

    #[test]
    fn lines_are_shown_once_and_skipping_nothing_is_said() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for line in [
            "postgres: 18.4",
            "cluster: real v1.36.3",
            "postgres: 18.4",
            "postgres: 15.14",
        ] {
            append(file.path(), line).unwrap();
        }
        assert_eq!(
            lines(file.path()).unwrap(),
            [
                "cluster: real v1.36.3",
                "postgres: 15.14",
                "postgres: 18.4",
                "skipped: no suite"
            ]
        );
        append(file.path(), "skipped: PostgreSQL 16: not there").unwrap();
        let shown = lines(file.path()).unwrap();
        assert_eq!(
            shown.last().map(String::as_str),
            Some("skipped: PostgreSQL 16: not there")
        );
        assert!(!shown.contains(&"skipped: no suite".to_owned()));
    }
}
