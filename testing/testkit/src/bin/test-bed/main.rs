//! Runs a command beside one test cluster: `test-bed cargo test --workspace`.
//!
//! A test binary without a cluster starts its own, which takes seconds and half a gigabyte. Under this program all
//! binaries of a run share one. At the end it lists what they ran against and what they skipped.
//!
//! If there is enough memory, more tests run in parallel than there are cores, and their servers keep their files in
//! memory.
//!
//! `test-bed --watch BINARY [ARGUMENT]...` runs one test binary and kills tests that hang ([`deadline`]). Under
//! `test-bed`, cargo runs each test binary that way.

#![allow(
    clippy::print_stderr,
    reason = "what went wrong and what was used are this program's only output"
)]

mod deadline;
mod progress;

use std::{env, ffi::OsString, path::PathBuf, process::ExitCode, thread::available_parallelism};

use stanchion_testkit::{
    cluster::{Cluster, KUBECONFIG_VARIABLE, Kind},
    report,
};
use tokio::{
    process::Command,
    signal::unix::{SignalKind, signal},
};

/// Makes this program cargo's runner.
const WATCH: &str = "--watch";

/// Number of tests that a binary runs in parallel. The standard test harness reads it.
const THREADS_VARIABLE: &str = "RUST_TEST_THREADS";

/// Where test servers keep their files.
const FILES_VARIABLE: &str = "TMPDIR";
/// Files that are deleted with the test do not need a disk.
const MEMORY: &str = "/dev/shm";
/// A container may have very little of it. A run has a few servers at a time, with a hundred megabytes each.
const ENOUGH_MEMORY: u64 = 4 << 30;

fn is_roomy(place: &str) -> bool {
    rustix::fs::statvfs(place).is_ok_and(|there| there.f_bavail * there.f_frsize >= ENOUGH_MEMORY)
}

/// Tests mostly wait. A real control plane needs the cores itself.
const fn tests_a_core(kind: Kind) -> usize {
    match kind {
        Kind::Sandbox => 2,
        Kind::Real => 1,
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1).peekable();
    let is_watch = arguments.next_if(|first| first == WATCH).is_some();
    let Some(program) = arguments.next() else {
        eprintln!("usage: test-bed [{WATCH}] COMMAND [ARGUMENT]...");
        return ExitCode::from(2);
    };
    if is_watch {
        let arguments: Vec<OsString> = arguments.collect();
        return deadline::run(&program, &arguments).await.unwrap_or_else(|error| {
            eprintln!("test-bed: {}: {error}", program.display());
            ExitCode::FAILURE
        });
    }
    let mut command = Command::new(&program);
    command.args(arguments).kill_on_drop(true);
    let cluster = match env::var_os(KUBECONFIG_VARIABLE) {
        Some(_) => None,
        None => match Cluster::try_start().await {
            Ok(cluster) => Some(cluster),
            Err(error) => {
                eprintln!("test-bed: {error}");
                return ExitCode::FAILURE;
            }
        },
    };
    if let Some(cluster) = &cluster {
        command.env(KUBECONFIG_VARIABLE, cluster.kubeconfig_path());
    }
    if env::var_os(THREADS_VARIABLE).is_none() {
        let cores = available_parallelism().map_or(1, usize::from);
        command.env(
            THREADS_VARIABLE,
            (cores * tests_a_core(Kind::chosen())).to_string(),
        );
    }
    if env::var_os(FILES_VARIABLE).is_none() && is_roomy(MEMORY) {
        command.env(FILES_VARIABLE, MEMORY);
    }
    watch_binaries(&mut command);
    match reported(command).await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("test-bed: {}: {error}", program.display());
            ExitCode::FAILURE
        }
    }
}

/// Makes cargo run each test binary under this program.
fn watch_binaries(command: &mut Command) {
    let variable = deadline::runner_variable();
    if env::var_os(&variable).is_some() {
        return;
    }
    match env::current_exe() {
        // Cargo splits the value at spaces.
        Ok(program) if !program.to_string_lossy().contains(char::is_whitespace) => {
            command.env(variable, format!("{} {WATCH}", program.display()));
        }
        Ok(program) => eprintln!(
            "test-bed: {}: a space in it: tests have no deadline",
            program.display()
        ),
        Err(error) => eprintln!("test-bed: where this program is: {error}: tests have no deadline"),
    }
}

async fn reported(mut command: Command) -> std::io::Result<ExitCode> {
    let temporary = tempfile::NamedTempFile::new()?;
    let file = env::var_os(report::VARIABLE).map_or_else(|| temporary.path().to_owned(), PathBuf::from);
    command.env(report::VARIABLE, &file);
    let code = run(command).await?;
    for line in report::lines(&file)? {
        eprintln!("test-bed: {line}");
    }
    Ok(code)
}

async fn run(mut command: Command) -> std::io::Result<ExitCode> {
    // Ctrl-C also reaches the command. It decides what to do, and the cluster ends after it.
    let mut interrupted = signal(SignalKind::interrupt())?;
    let mut terminated = signal(SignalKind::terminate())?;
    let mut child = command.spawn()?;
    loop {
        tokio::select! {
            status = child.wait() => {
                let code = status?.code().and_then(|code| u8::try_from(code).ok());
                return Ok(code.map_or(ExitCode::FAILURE, ExitCode::from));
            }
            _ = interrupted.recv() => {}
            _ = terminated.recv() => child.start_kill()?,
        }
    }
}
