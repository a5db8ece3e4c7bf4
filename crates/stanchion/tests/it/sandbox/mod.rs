//! `stanchion sandbox`: what it promises to somebody who has no cluster, and that nothing stays when it ends.

mod api;
mod demo;
mod hints;
mod kept;
mod killed;
mod place;
mod processes;
mod terminal;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use stanchion_testkit::report;

use crate::operator::text;

/// `$PATH`, and after it the folder of the control plane's programs, where kubectl is.
fn path() -> OsString {
    let own = std::env::var_os("PATH").unwrap_or_default();
    let assets = std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from);
    std::env::join_paths(std::env::split_paths(&own).chain(assets)).unwrap()
}

/// Whether the machine has these programs; the run's report says when a test was left out for want of one.
fn has(programs: &[&str]) -> bool {
    let is_missing =
        |program: &&&str| !std::env::split_paths(&path()).any(|folder| folder.join(program).is_file());
    match programs.iter().find(is_missing) {
        None => true,
        Some(missing) => {
            report::skipped("stanchion sandbox, as others see it", &format!("no {missing}"));
            false
        }
    }
}

/// What kubectl answers.
fn ask(kubeconfig: &str, question: &str) -> String {
    let output = Command::new("kubectl")
        .env("PATH", path())
        .args(["--kubeconfig", kubeconfig])
        .args(question.split(' '))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}
