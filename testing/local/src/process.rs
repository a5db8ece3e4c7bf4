//! Child processes that cannot outlive this process.
//!
//! We may end by `exit`, by a panic or by SIGKILL, and statics are never dropped; none of these runs a destructor. So
//! each child is started by a small supervising shell which reads a pipe whose other end only we have. However we end,
//! the shell then reads the end of the file and ends the child. The same pipe carries signals, one name per line.

use std::{
    ffi::OsString,
    fmt,
    io::{BufRead, BufReader, Write},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    time::Duration,
};

use crate::{
    account::Account,
    error::{Attempt, Error},
};

/// `$1`: log file, `$2`: signal that ends the child, the rest: the command. A frozen process is continued so that it
/// can end.
const SUPERVISOR: &str = r#"
log=$1 parting=$2; shift 2
exec 3<&0
"$@" </dev/null >>"$log" 2>&1 3<&- &
child=$!
echo "$child"
exec >/dev/null 2>&1
( while read -r signal <&3; do kill -s "$signal" "$child"; done
  kill -s "$parting" "$child"; kill -s CONT "$child" ) &
listener=$!
exec 3<&-
wait "$child"; status=$?
kill "$listener"
exit "$status"
"#;

/// A signal that can be sent to a [`Process`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Ask to end.
    Term,
    /// Ctrl-C; PostgreSQL's fast shutdown.
    Int,
    /// PostgreSQL's immediate shutdown.
    Quit,
    /// End without asking.
    Kill,
    /// Freeze.
    Stop,
    /// Go on after [`Signal::Stop`].
    Cont,
    /// Reload.
    Hup,
}

impl Signal {
    fn name(self) -> &'static str {
        match self {
            Self::Term => "TERM",
            Self::Int => "INT",
            Self::Quit => "QUIT",
            Self::Kill => "KILL",
            Self::Stop => "STOP",
            Self::Cont => "CONT",
            Self::Hup => "HUP",
        }
    }
}

/// A command that is about to become a [`Process`].
#[derive(Debug)]
pub struct Launch {
    program: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    directory: Option<PathBuf>,
    account: Option<Account>,
    log: PathBuf,
    parting: Signal,
}

impl Launch {
    /// `program` with its output appended to `log`.
    pub fn new(program: impl Into<PathBuf>, log: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            environment: Vec::new(),
            directory: None,
            account: None,
            log: log.into(),
            parting: Signal::Kill,
        }
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// The working directory.
    #[must_use]
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// The signal that ends the process when we end. Default: SIGKILL.
    #[must_use]
    pub fn parting(mut self, signal: Signal) -> Self {
        self.parting = signal;
        self
    }

    /// Runs as another user.
    #[must_use]
    pub fn account(mut self, account: Option<Account>) -> Self {
        self.account = account;
        self
    }

    /// Starts the process.
    pub fn spawn(self) -> Result<Process, Error> {
        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-c", SUPERVISOR, "supervisor"])
            .arg(&self.log)
            .arg(self.parting.name())
            .arg(&self.program)
            .args(&self.arguments)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C in a terminal goes to the foreground group: the shell must live to clean up.
            .process_group(0);
        if let Some(directory) = &self.directory {
            shell.current_dir(directory);
        }
        if let Some(account) = self.account {
            account.run(&mut shell);
        }
        let starting = || format!("start {}", self.program.display());
        let mut supervisor = shell.spawn().attempting(starting)?;
        let control = supervisor.stdin.take();
        let mut first_line = String::new();
        if let Some(stdout) = supervisor.stdout.take() {
            BufReader::new(stdout)
                .read_line(&mut first_line)
                .attempting(starting)?;
        }
        let pid = first_line.trim().parse().map_err(|_| Error::Start {
            what: self.program.display().to_string(),
            why: "its supervising shell did not say its process id".to_owned(),
            log: crate::error::tail(&self.log),
        })?;
        Ok(Process {
            supervisor,
            control,
            pid,
            program: self.program,
            log: self.log,
        })
    }
}

/// A running child process; it ends when this is dropped, or when this process ends.
pub struct Process {
    supervisor: Child,
    control: Option<ChildStdin>,
    pid: u32,
    program: PathBuf,
    log: PathBuf,
}

impl Process {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Where its output goes.
    pub fn log_path(&self) -> &Path {
        &self.log
    }

    /// All its output so far.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// Sends a signal; does nothing if the process has ended.
    pub fn signal(&mut self, signal: Signal) {
        if let Some(control) = &mut self.control {
            // A broken pipe means that the process has ended.
            let _ = writeln!(control, "{}", signal.name());
        }
    }

    /// Whether it is frozen ([`Signal::Stop`] takes a moment to arrive).
    pub fn is_frozen(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        // The state follows the name, which is in parentheses and may contain anything.
        stat.rsplit_once(") ")
            .is_some_and(|(_, rest)| rest.starts_with('T'))
    }

    /// The exit status, if the process has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.supervisor.try_wait().ok().flatten()
    }

    /// Waits for the process to end by itself or by a signal sent before.
    pub async fn wait(&mut self) -> ExitStatus {
        loop {
            if let Some(status) = self.ended() {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Fails with the end of the log if the process has ended.
    pub fn check_alive(&mut self) -> Result<(), Error> {
        match self.ended() {
            None => Ok(()),
            Some(status) => Err(Error::Start {
                what: self.program.display().to_string(),
                why: status.to_string(),
                log: crate::error::tail(&self.log),
            }),
        }
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (pid {})", self.program.display(), self.pid)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.control.take());
        // Reaps the shell; it ends as soon as the child has.
        let _ = self.supervisor.wait();
    }
}
