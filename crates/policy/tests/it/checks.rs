//! The page of checks names only existing tests.

use std::fs;
use std::path::{Path, PathBuf};

/// Every source file below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] });
    files
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect()
}

/// A name is `module::function`: a test of that name in a file of that name.
#[test]
fn every_check_is_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/policy/checks.md")).unwrap();
    let sources = sources(&root.join("crates"));
    let names: Vec<&str> = page.split('`').filter(|text| text.contains("::")).collect();
    assert!(names.len() > 90, "{}", names.len());
    for name in names {
        let (module, function) = name.split_once("::").unwrap();
        let is_there = sources
            .iter()
            .filter(|path| path.file_stem().is_some_and(|stem| stem == module))
            .any(|path| {
                fs::read_to_string(path)
                    .unwrap()
                    .contains(&format!("fn {function}("))
            });
        assert!(is_there, "no file {module}.rs has a test {function}");
    }
}
