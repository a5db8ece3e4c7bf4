//! Runs one test binary as cargo's runner, and kills it when one of its tests exceeds the timeout.
//!
//! Rust's test harness has no timeout. This program reports a test that hangs as failed, in the harness's own format,
//! and runs the tests that had not started in another process.

use std::{
    collections::BTreeSet,
    env,
    ffi::{OsStr, OsString},
    io::{self, Write as _},
    process::{ExitCode, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::AsyncReadExt as _,
    process::{Child, ChildStdout, Command},
    signal::unix::{SignalKind, signal},
    time::{interval, timeout},
};

use super::progress::Progress;

/// Timeout of a test in seconds.
const VARIABLE: &str = "STANCHION_TEST_DEADLINE";
/// Many times what the slowest test takes on a busy machine.
const DEFAULT: Duration = Duration::from_mins(10);

/// The exit code of cargo's test commands after a failure.
const FAILED: u8 = 101;

/// Interval of the timeout checks.
const TICK: Duration = Duration::from_millis(500);
/// How long to read the rest of the output after the binary has ended; a child that outlives it may keep the pipe open.
const REST_OF_OUTPUT: Duration = Duration::from_secs(2);

/// The name of cargo's environment variable for a runner.
pub(crate) fn runner_variable() -> String {
    let library = if cfg!(target_env = "musl") { "musl" } else { "gnu" };
    let triple = format!("{}-unknown-linux-{library}", env::consts::ARCH);
    format!("CARGO_TARGET_{}_RUNNER", triple.to_uppercase().replace('-', "_"))
}

fn deadline() -> Duration {
    let seconds = env::var(VARIABLE).ok().and_then(|text| text.parse().ok());
    seconds.map_or(DEFAULT, Duration::from_secs)
}

/// How a process ended.
enum End {
    Itself(ExitStatus),
    /// It was killed because of these tests.
    Overdue(Vec<String>),
}

/// Runs the binary with these arguments, and repeats it without the tests that hang, until all others have run.
pub(crate) async fn run(program: &OsStr, arguments: &[OsString]) -> io::Result<ExitCode> {
    let (mut hung, mut done) = (BTreeSet::new(), BTreeSet::new());
    let mut words = arguments.to_vec();
    let code = loop {
        let mut progress = Progress::new(Instant::now());
        let names = match watch(program, &words, &mut progress).await? {
            End::Itself(status) => break code(program, status),
            End::Overdue(names) => names,
        };
        if names.is_empty() {
            let program = program.display();
            say(&format!(
                "{program} printed nothing for {} seconds",
                deadline().as_secs()
            ))?;
            break FAILED;
        }
        for name in &names {
            let seconds = deadline().as_secs();
            say(&format!(
                "\ntest {name} ... FAILED: it did not end within {seconds} seconds"
            ))?;
        }
        hung.extend(names);
        let listed = list(program, arguments).await?;
        done.extend(listed.iter().filter(|name| progress.is_done(name)).cloned());
        let (left, not): (Vec<_>, Vec<_>) = listed
            .into_iter()
            .partition(|name| !done.contains(name) && !hung.contains(name));
        if left.is_empty() {
            break FAILED;
        }
        say(&format!("{} tests are left, in another process", left.len()))?;
        // With their exact names; the first arguments may name tests that must not run.
        words = arguments.to_vec();
        let exact = OsString::from("--exact");
        if !words.contains(&exact) {
            words.push(exact);
        }
        words.extend(left.into_iter().map(OsString::from));
        words.extend(
            not.into_iter()
                .flat_map(|name| ["--skip".into(), OsString::from(name)]),
        );
    };
    if hung.is_empty() {
        return Ok(ExitCode::from(code));
    }
    // In the harness's format, so that programs which read its output find the names.
    let names: Vec<String> = hung.into_iter().map(|name| format!("    {name}")).collect();
    say(&format!(
        "\nfailures:\n{}\n\ntest result: FAILED. {} did not end",
        names.join("\n"),
        names.len()
    ))?;
    Ok(ExitCode::from(FAILED))
}

/// Runs the binary once, until it ends or a test exceeds the timeout.
async fn watch(program: &OsStr, arguments: &[OsString], progress: &mut Progress) -> io::Result<End> {
    let mut interrupted = signal(SignalKind::interrupt())?;
    let mut terminated = signal(SignalKind::terminate())?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdout(Stdio::piped())
        // All its child processes end with it.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    let group = group(&child);
    let mut output = child.stdout.take();
    let mut ticks = interval(TICK);
    let mut buffer = vec![0; 1 << 16];
    loop {
        tokio::select! {
            read = read(&mut output, &mut buffer) => match read? {
                0 => output = None,
                length => pass_on(buffer.get(..length).unwrap_or_default(), progress)?,
            },
            status = child.wait() => {
                let rest = async {
                    while output.is_some() {
                        match read(&mut output, &mut buffer).await? {
                            0 => output = None,
                            length => pass_on(buffer.get(..length).unwrap_or_default(), progress)?,
                        }
                    }
                    io::Result::Ok(())
                };
                if let Ok(read) = timeout(REST_OF_OUTPUT, rest).await {
                    read?;
                }
                return Ok(End::Itself(status?));
            }
            _ = ticks.tick() => {
                if let Some(names) = progress.overdue(deadline(), Instant::now()) {
                    end(group, Signal::KILL);
                    child.wait().await?;
                    return Ok(End::Overdue(names));
                }
            }
            _ = interrupted.recv() => end(group, Signal::INT),
            _ = terminated.recv() => end(group, Signal::TERM),
        }
    }
}

fn group(child: &Child) -> Option<Pid> {
    Pid::from_raw(i32::try_from(child.id()?).ok()?)
}

fn end(group: Option<Pid>, signal: Signal) {
    if let Some(group) = group {
        // The process may have just ended by itself.
        let _ = kill_process_group(group, signal);
    }
}

/// Waits forever once the output has ended.
async fn read(output: &mut Option<ChildStdout>, buffer: &mut [u8]) -> io::Result<usize> {
    match output {
        Some(output) => output.read(buffer).await,
        None => std::future::pending().await,
    }
}

fn pass_on(bytes: &[u8], progress: &mut Progress) -> io::Result<()> {
    progress.read(bytes, Instant::now());
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

fn say(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

fn code(program: &OsStr, status: ExitStatus) -> u8 {
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    code.unwrap_or_else(|| {
        eprintln!("test-bed: {} ended by {status}", program.display());
        FAILED
    })
}

/// The tests that these arguments select.
async fn list(program: &OsStr, arguments: &[OsString]) -> io::Result<BTreeSet<String>> {
    let mut listing = Command::new(program);
    listing
        .args(arguments)
        .args(["--list", "--format=terse"])
        .kill_on_drop(true);
    let output = timeout(deadline(), listing.output())
        .await
        .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "it does not list its tests"))??;
    let listed = String::from_utf8_lossy(&output.stdout);
    let names = listed.lines().filter_map(|line| line.strip_suffix(": test"));
    Ok(names.map(str::to_owned).collect())
}
