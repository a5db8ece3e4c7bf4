//! The report of a test run. The testkit does the same for other crates, but depends on this one.

use std::fs::OpenOptions;
use std::io::Write as _;

/// Records that a test, or a part of it, did not run, also in the report of a run: the output of a test that passes is
/// hidden.
pub(crate) fn skipped(why: &str) {
    let test = std::thread::current();
    let line = format!("skipped: {}: {why}\n", test.name().unwrap_or("a test"));
    eprint!("{line}");
    if let Some(file) = std::env::var_os("STANCHION_TEST_REPORT") {
        let mut file = OpenOptions::new().append(true).create(true).open(file).unwrap();
        file.write_all(line.as_bytes()).unwrap();
    }
}
