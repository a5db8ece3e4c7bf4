//! The generated files in the repository are up to date.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use stanchion_testkit::scratch::Scratch;

use crate::operator::stdout;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every file below a folder, by its path below `root`.
fn files(root: &Path, folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(root.join(folder)).into_iter().flatten() {
        let path = folder.join(entry.unwrap().file_name());
        if root.join(&path).is_dir() {
            found.extend(files(root, &path));
        } else {
            let text = std::fs::read_to_string(root.join(&path)).unwrap();
            found.insert(path, text);
        }
    }
    found
}

#[test]
fn deploy_and_the_reference_are_what_make_generate_writes() {
    let scratch = Scratch::new("stanchion-generate-").unwrap();
    stdout(["generate".as_ref(), scratch.path().as_os_str()]);
    let generated = files(scratch.path(), Path::new(""));
    assert!(!generated.is_empty());
    for (path, text) in &generated {
        let kept = std::fs::read_to_string(root().join(path)).unwrap_or_default();
        assert!(kept == *text, "{} is stale: run `make generate`", path.display());
    }
    // A removed kind must not leave a CRD behind that people would still install.
    let folders = ["deploy/argocd", "deploy/crds", "charts/stanchion/files/crds"];
    for path in folders
        .iter()
        .flat_map(|folder| files(&root(), Path::new(folder)).into_keys())
    {
        assert!(
            generated.contains_key(&path),
            "{} is no longer generated: delete it",
            path.display()
        );
    }
}
