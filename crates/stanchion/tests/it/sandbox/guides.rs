//! Runs every block of commands in the README and the guides on the sandbox, unless the block says why not.
//!
//! A block of `sh` or `console` that cannot run here has a comment on the line before it: `<!-- not run: the reason -->`. A line
//! that ends with `until Ctrl-C` is ended after a moment. A line whose comment names an exit code, such as `# exit code 1: …`, may end with
//! this one.

use std::path::{Path, PathBuf};

use stanchion_testkit::process::Signal;

use super::directory::Place;
use super::has;
use crate::operator::BINARY;

/// The database of `stanchion roles`: that of the sandbox.
const DATABASE: &str =
    "export DATABASE_URL=$(kubectl get secret postgres-admin -o jsonpath='{.data.uri}' | base64 -d)";

/// A block of commands.
struct Block {
    place: String,
    script: String,
    /// Why it is not run.
    excuse: Option<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// The README and every page for users. Decisions, runbooks and security contain commands that are not for a healthy
/// cluster, and the reference has no commands.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md")];
    for folder in [
        "docs",
        "docs/gitlab",
        "docs/policy",
        "docs/postgresuser",
        "docs/roles",
        "docs/supabase",
    ] {
        let entries = std::fs::read_dir(root().join(folder)).unwrap();
        let mut files: Vec<PathBuf> = entries
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
            .collect();
        files.sort();
        pages.extend(files);
    }
    pages
}

/// The commands of a block: all of `sh`, and the text after a prompt in `console`.
fn typed(language: &str, lines: &[&str]) -> String {
    let lines = lines.iter().filter_map(|line| match language {
        "console" => line.trim_start().strip_prefix("$ "),
        _ => Some(*line),
    });
    let lines = lines.map(|line| {
        if line.trim_end().ends_with("until Ctrl-C") {
            let command = line.split(" #").next().unwrap_or(line).trim();
            format!("timeout --signal=INT 5 {command} || [ $? = 124 ]")
        } else if let Some(code) = exit_code(line) {
            let command = line.split(" #").next().unwrap_or(line).trim();
            format!("{command} || [ $? = {code} ]")
        } else {
            line.to_owned()
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The exit code in the comment of a line.
fn exit_code(line: &str) -> Option<u8> {
    let (_, comment) = line.split_once(" #")?;
    let (_, code) = comment.split_once("exit code ")?;
    code.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

fn blocks(page: &Path) -> Vec<Block> {
    let text = std::fs::read_to_string(page).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let name = page.strip_prefix(root()).unwrap().display().to_string();
    let mut found = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let Some(language) = lines[at].trim_start().strip_prefix("```") else {
            at += 1;
            continue;
        };
        let length = lines[at + 1..]
            .iter()
            .position(|line| line.trim_start().starts_with("```"))
            .unwrap_or_else(|| panic!("{name}:{}: the block has no end", at + 1));
        if ["sh", "console", "bash", "shell"].contains(&language) {
            let before = lines[..at].iter().rev().find(|line| !line.trim().is_empty());
            let excuse =
                before.and_then(|line| line.trim().strip_prefix("<!-- not run: ")?.strip_suffix(" -->"));
            found.push(Block {
                place: format!("{name}:{}", at + 1),
                script: typed(language, &lines[at + 1..at + 1 + length]),
                excuse: excuse.map(str::to_owned),
            });
        }
        at += length + 2;
    }
    found
}

#[test]
fn an_excuse_is_a_sentence() {
    for block in pages().iter().flat_map(|page| blocks(page)) {
        if let Some(excuse) = block.excuse {
            assert!(excuse.split(' ').count() >= 4, "{}: {excuse}", block.place);
        }
    }
}

#[tokio::test]
async fn every_block_of_commands_works() {
    if !has(&["kubectl", "timeout"]) {
        return;
    }
    let blocks: Vec<Block> = pages().iter().flat_map(|page| blocks(page)).collect();
    let place = Place::new();
    let sandbox = place.start(&[]);
    sandbox.says("Ctrl-C ends everything").await;
    let programs = Path::new(BINARY).parent().unwrap().display().to_string();
    let scratch = place.file("guides");
    std::fs::create_dir(&scratch).unwrap();
    // The paths of a clone, and a folder that takes what is written.
    for folder in ["charts", "deploy", "examples"] {
        std::os::unix::fs::symlink(root().join(folder), Path::new(&scratch).join(folder)).unwrap();
    }
    // The program is installed, as the guide says.
    let installed = Path::new(&scratch).join(".local/bin");
    std::fs::create_dir_all(&installed).unwrap();
    std::os::unix::fs::symlink(BINARY, installed.join("stanchion")).unwrap();
    let (mut ran, mut broken) = (0, Vec::new());
    for block in blocks.iter().filter(|block| block.excuse.is_none()) {
        let script = format!(
            "set -euo pipefail\nexport PATH={programs}:{scratch}/.local/bin:$PATH HOME={scratch}\n{DATABASE}\ncd {scratch}\n{}",
            block.script
        );
        if let Err(said) = sandbox.shell(&script).await {
            broken.push(format!("{}:\n{}\n→ {said}", block.place, block.script));
        }
        ran += 1;
    }
    assert!(broken.is_empty(), "{}", broken.join("\n\n"));
    assert!(ran >= 10, "only {ran} blocks ran");
    assert_eq!(sandbox.end(Signal::Int).await, Some(0));
}
