//! What the workflow of a release packs, with its own commands.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use stanchion_testkit::scratch::Scratch;

const ARCHIVE: &str = "stanchion-1.2.3-linux-amd64.tar.gz";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The script of a step.
fn script(step: &str) -> String {
    let text = fs::read_to_string(root().join(".github/workflows/release.yml")).unwrap();
    let workflow: Value = serde_saphyr::from_str(&text).unwrap();
    let jobs = workflow["jobs"].as_object().unwrap();
    let mut steps = jobs
        .values()
        .flat_map(|job| job["steps"].as_array().into_iter().flatten());
    let found = steps.find(|found| found["name"] == step);
    found.unwrap_or_else(|| panic!("no step {step:?}"))["run"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// Runs a step as GitHub does it, in this folder.
fn run(step: &str, folder: &Path) -> Output {
    let programs = std::env::var("PATH").unwrap();
    Command::new("bash")
        .args(["--noprofile", "--norc", "-eo", "pipefail", "-c", &script(step)])
        .current_dir(folder)
        .env("PATH", format!("{}:{programs}", folder.join("bin").display()))
        .env("ARCHIVE", ARCHIVE)
        .output()
        .unwrap()
}

fn program(path: &Path, script: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// krew unpacks folders and regular files only, and starts the file that its manifest names.
#[test]
fn krew_can_install_the_archive() {
    const CHECK: &str = "The archive contains folders and regular files only";
    let scratch = Scratch::new("stanchion-pack-").unwrap();
    let folder = scratch.path();
    program(
        &folder.join("target/release/stanchion"),
        "mkdir -p $2 && touch $2/stanchion.1",
    );
    program(&folder.join("bin/git"), "echo 1700000000");
    fs::write(folder.join("target/stanchion.cdx.json"), "{}").unwrap();
    fs::write(folder.join("LICENSE"), "").unwrap();
    for step in ["Pack", CHECK] {
        let done = run(step, folder);
        assert!(done.status.success(), "{step}: {done:?}");
    }
    let sums = folder.join("SHA256SUMS");
    let arm = ARCHIVE.replace("amd64", "arm64");
    fs::write(&sums, format!("00  {ARCHIVE}\n11  {arm}\n")).unwrap();
    let manifest = Command::new(root().join("tools/krew-manifest"))
        .args([
            "1.2.3",
            sums.to_str().unwrap(),
            "https://git.example.com/team/stanchion",
        ])
        .output()
        .unwrap();
    let manifest: Value = serde_saphyr::from_str(&String::from_utf8(manifest.stdout).unwrap()).unwrap();
    for platform in manifest["spec"]["platforms"].as_array().unwrap() {
        let packed = folder.join("pack").join(platform["bin"].as_str().unwrap());
        assert!(fs::symlink_metadata(&packed).unwrap().is_file(), "{platform}");
    }

    // The check finds a link.
    let linked = "ln -s stanchion pack/kubectl-stanchion && tar -C pack -czf \"$0\" .";
    let made = Command::new("bash")
        .args(["-c", linked, ARCHIVE])
        .current_dir(folder)
        .status()
        .unwrap();
    assert!(made.success());
    let refused = run(CHECK, folder);
    assert!(!refused.status.success(), "{refused:?}");
}

/// Without its name, the images and the chart would be pushed to a path without a registry, after an hour of compiling.
#[test]
fn a_release_without_a_registry_ends_at_once() {
    let scratch = Scratch::new("stanchion-registry-").unwrap();
    let done = run("The registry has a name", scratch.path());
    assert!(!done.status.success(), "{done:?}");
}
