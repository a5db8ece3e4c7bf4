//! No test can hang: `test-bed --watch`, as cargo runs a test binary under `test-bed`.

use std::{
    env,
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, Output},
    thread,
    time::Duration,
};

fn watched(program: &Path, arguments: &[&str]) -> (Output, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_test-bed"))
        .arg("--watch")
        .arg(program)
        .args(arguments)
        .env("STANCHION_TEST_DEADLINE", "3")
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout.clone()).unwrap();
    (output, said)
}

/// A program that prints the output of the test harness.
fn script(text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tests");
    fs::write(&file, format!("#!/bin/sh\n{text}")).unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o755)).unwrap();
    folder
}

#[test]
#[ignore = "hangs: other tests here run it in a process of its own"]
fn hangs() {
    loop {
        thread::sleep(Duration::from_mins(1));
    }
}

#[test]
#[ignore = "fails: as above"]
fn fails() {
    panic!("a reason");
}

/// The names that `.ci/run` retries, found with the same pattern.
fn failed(said: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut is_list = false;
    for line in said.lines() {
        is_list = (is_list || line == "failures:") && !line.starts_with("test result: FAILED");
        if is_list
            && let Some(name) = line.strip_prefix("    ")
            && !name.contains(' ')
        {
            names.push(name);
        }
    }
    names
}

/// This binary itself, with the real harness: one test hangs, one that comes after it fails, one passes.
#[test]
fn a_test_that_hangs_is_named_and_the_others_run() {
    let arguments = [
        "--include-ignored",
        "--test-threads=1",
        "--exact",
        "deadline::fails",
        "deadline::hangs",
        "test_bed::without_a_command_it_says_how_it_is_used",
    ];
    let (output, said) = watched(&env::current_exe().unwrap(), &arguments);
    assert_eq!(output.status.code(), Some(101), "{said}");
    let hung = "test deadline::hangs ... FAILED: it did not end within 3 seconds";
    assert!(said.contains(hung), "{said}");
    let passed = "test test_bed::without_a_command_it_says_how_it_is_used ... ok";
    assert!(said.contains(passed), "it comes after the one that hangs: {said}");
    assert!(
        said.contains("a reason"),
        "the output says why the other fails: {said}"
    );
    assert_eq!(failed(&said), ["deadline::fails", "deadline::hangs"], "{said}");
    let lists = said
        .lines()
        .filter(|line| line.starts_with("test result: FAILED"));
    assert_eq!(lists.count(), 2, "{said}");
}

/// As the harness reports tests that run in parallel.
#[test]
fn a_test_that_is_called_slow_is_ended_with_all_that_it_started() {
    let folder = script(
        "case \"$*\" in *--list*) echo 'a::hangs: test'; exit;; esac\n\
         sleep 300 & echo $! > \"$(dirname \"$0\")/child\"\n\
         echo 'test a::hangs has been running for over 60 seconds'; wait\n",
    );
    let (output, said) = watched(&folder.path().join("tests"), &[]);
    assert_eq!(output.status.code(), Some(101), "{said}");
    assert_eq!(failed(&said), ["a::hangs"], "{said}");
    let child = fs::read_to_string(folder.path().join("child")).unwrap();
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.trim())).unwrap_or_default();
    assert!(stat.is_empty() || stat.contains(") Z "), "it runs still: {stat}");
}

#[test]
fn a_binary_that_says_nothing_is_ended_too() {
    let folder = script("sleep 300\n");
    let (output, said) = watched(&folder.path().join("tests"), &[]);
    assert_eq!(output.status.code(), Some(101), "{said}");
    assert!(said.contains("printed nothing for 3 seconds"), "{said}");
}

/// Output, arguments and status are unchanged for a test that ends in time.
#[test]
fn what_ends_in_time_is_passed_on() {
    let folder = script("echo \"said: $*\"; echo complained >&2; exit 7\n");
    let (output, said) = watched(&folder.path().join("tests"), &["--one", "two three"]);
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(said, "said: --one two three\n");
    assert_eq!(output.stderr, b"complained\n");
}
