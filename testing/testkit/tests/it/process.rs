//! Children and directories do not outlive the test process.

use std::{
    env,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use stanchion_testkit::{
    process::{Launch, Process, Signal},
    scratch::{Passing, Scratch},
    wait::eventually,
};

use crate::DEADLINE;

fn sleeper(scratch: &Scratch) -> Process {
    Launch::new("/bin/sleep", scratch.path().join("sleep.log"))
        .args(["3600"])
        .spawn()
        .unwrap()
}

fn is_running(pid: u32) -> bool {
    // A zombie has no command line.
    std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty())
}

/// Before the exec, a process has no command line, either.
async fn begins(pid: u32) {
    eventually(DEADLINE, "the child to begin", || async { is_running(pid) }).await;
}

#[tokio::test]
async fn a_child_ends_with_its_handle() {
    let scratch = Scratch::new("testkit-").unwrap();
    let child = sleeper(&scratch);
    let pid = child.pid();
    begins(pid).await;
    drop(child);
    assert!(!is_running(pid));
    let path = scratch.path().to_owned();
    drop(scratch);
    assert!(!path.exists());
}

#[test]
fn a_file_ends_with_its_handle_unless_it_is_another_one_by_then() {
    let scratch = Scratch::new("testkit-").unwrap();
    let path = scratch.path().join("file");
    std::fs::write(&path, "ours").unwrap();
    drop(Passing::file(path.clone()).unwrap());
    assert!(!path.exists());

    std::fs::write(&path, "ours").unwrap();
    let passing = Passing::file(path.clone()).unwrap();
    let others = scratch.path().join("others");
    std::fs::write(&others, "others").unwrap();
    std::fs::rename(others, &path).unwrap();
    drop(passing);
    assert_eq!(std::fs::read_to_string(path).unwrap(), "others");
}

#[tokio::test]
async fn signals_reach_the_child_and_its_status_comes_back() {
    let scratch = Scratch::new("testkit-").unwrap();
    let mut child = Launch::new("/bin/sh", scratch.path().join("sh.log"))
        .args([
            "-c",
            "trap 'echo got it; exit 7' TERM; echo ready; while :; do sleep 0.05; done",
        ])
        .spawn()
        .unwrap();
    eventually(DEADLINE, "the trap to be set", || async {
        child.log().contains("ready")
    })
    .await;
    child.signal(Signal::Term);
    assert_eq!(child.wait().await.code(), Some(7));
    assert!(child.log().contains("got it"));
}

#[tokio::test]
async fn children_and_directories_go_when_the_test_process_is_killed() {
    let mut victim = Command::new(env::current_exe().unwrap())
        .args([
            "--exact",
            "process::stay_until_killed",
            "--ignored",
            "--nocapture",
        ])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (pid, directory) = BufReader::new(victim.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok)
        .find_map(|line| {
            let (pid, path) = line.split_once("VICTIM ")?.1.split_once(' ')?;
            Some((pid.parse::<u32>().ok()?, PathBuf::from(path)))
        })
        .expect("the victim says what it started");
    begins(pid).await;
    assert!(Path::new(&directory).exists());
    victim.kill().unwrap();
    victim.wait().unwrap();
    eventually(DEADLINE, "the child to end", || async { !is_running(pid) }).await;
    eventually(DEADLINE, "the directory to be removed", || async {
        !directory.exists()
    })
    .await;
}

#[test]
#[ignore = "the helper process of the test above"]
fn stay_until_killed() {
    let scratch = Scratch::new("testkit-").unwrap();
    let child = sleeper(&scratch);
    println!("VICTIM {} {}", child.pid(), scratch.path().display());
    std::io::stdout().flush().unwrap();
    loop {
        std::thread::park();
    }
}
