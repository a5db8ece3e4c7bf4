//! The operator's image, as far as it can be built without a container engine.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use regex::Regex;
use stanchion_testkit::report;
use stanchion_testkit::scratch::Scratch;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// The files and folders at the root that Docker copies. The ignore file excludes everything and then names them: this is
/// all that the test understands.
fn copied() -> Vec<String> {
    let text = std::fs::read_to_string(root().join("deploy/Dockerfile.dockerignore")).unwrap();
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    assert_eq!(lines.next(), Some("*"));
    lines
        .map(|line| {
            let name = line.strip_prefix('!').unwrap_or_else(|| panic!("{line}"));
            assert!(!name.contains(['*', '/', '?']), "{line}");
            name.to_owned()
        })
        .collect()
}

/// Copies a file, or a folder with everything in it.
pub(crate) fn copy(from: &Path, to: &Path) {
    if from.is_dir() {
        std::fs::create_dir_all(to).unwrap();
        for entry in std::fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            copy(&entry.path(), &to.join(entry.file_name()));
        }
    } else {
        std::fs::copy(from, to).unwrap();
    }
}

/// The code of the program below a folder: not of tests.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_test = path.file_stem() == Some(OsStr::new("tests"));
        if path.is_dir() && !is_test {
            sources(&path, found);
        } else if path.extension() == Some(OsStr::new("rs")) && !is_test {
            found.push(path);
        }
    }
}

#[test]
fn the_image_is_built_from_files_that_are_copied() {
    let scratch = Scratch::new("stanchion-image-").unwrap();
    for name in copied() {
        copy(&root().join(&name), &scratch.path().join(&name));
    }

    // Every member of the workspace has its manifest and its targets there, and the lock file is theirs.
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--offline", "--all-features"])
        .args(["--package=stanchion", "--edges=normal,build"])
        .current_dir(scratch.path())
        .output()
        .unwrap();
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));

    // And so has every file that the code includes.
    let mut files = Vec::new();
    sources(scratch.path(), &mut files);
    let include = Regex::new(r#"include(?:_str|_bytes)?!\(\s*"([^"]+)""#).unwrap();
    let (mut included, mut missing) = (0, Vec::new());
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for found in include.captures_iter(code) {
            included += 1;
            if !file.parent().unwrap().join(&found[1]).exists() {
                missing.push(format!("{}: {}", file.display(), &found[1]));
            }
        }
    }
    assert!(included > 30, "{included}");
    assert!(
        missing.is_empty(),
        "deploy/Dockerfile.dockerignore leaves these out: {missing:#?}"
    );
}

/// The workflow gives its own programs in place of a stage. That works only if later stages take everything from it and run
/// nothing, which another architecture could not do.
#[test]
fn the_last_stage_of_the_image_runs_nothing_and_is_not_root() {
    let text = std::fs::read_to_string(root().join("deploy/Dockerfile")).unwrap();
    let (_, last) = text.rsplit_once("\nFROM ").unwrap();
    let steps = |word: &str| -> Vec<&str> { last.lines().filter(|line| line.starts_with(word)).collect() };
    assert_eq!(steps("RUN "), [] as [&str; 0]);
    assert_eq!(steps("USER "), ["USER 65532:65532"]);
    assert_eq!(steps("COPY "), ["COPY --chmod=755 --from=program /$TARGETARCH /"]);
    assert!(last.starts_with("scratch\n"), "{last}");
    let workflow = std::fs::read_to_string(root().join(".github/workflows/release.yml")).unwrap();
    assert!(workflow.contains("build-contexts: program=program\n"));
}

/// The program starts where nothing but the files of the image is.
#[test]
fn the_program_runs_with_the_files_of_the_image_alone() {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root || !Path::new("/var/lib/dpkg/status").exists() {
        report::skipped(&report::this_test(), "it needs root and Debian");
        return;
    }
    let scratch = Scratch::new("stanchion-image-root-").unwrap();
    let image = scratch.path().join("root");
    let made = Command::new(root().join("tools/image-root"))
        .args([Path::new(env!("CARGO_BIN_EXE_stanchion")), &image])
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let inside = |arguments: &[&str]| {
        let output = Command::new("chroot")
            .args(["--userspec=65532:65532".as_ref(), image.as_os_str()])
            .arg("/usr/local/bin/stanchion")
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(text).unwrap())
    };
    let (succeeded, version) = inside(&["--version"]);
    assert!(succeeded && version.starts_with("stanchion "), "{version}");
    let (succeeded, refused) = inside(&["run"]);
    assert!(
        !succeeded && refused.contains("no cluster is configured"),
        "{refused}"
    );
    for file in ["etc/ssl/certs/ca-certificates.crt", "var/lib/dpkg/status.d/libc6"] {
        assert!(image.join(file).metadata().unwrap().len() > 0, "{file}");
    }
}
