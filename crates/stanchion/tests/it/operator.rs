//! Starts the binary: once to check its output, or as a running operator.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Output};

use stanchion_testkit::operator_log::OperatorLog;
use stanchion_testkit::process::{Launch, Process, Signal};
use stanchion_testkit::scratch::Scratch;
use stanchion_testkit::wait;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::DEADLINE;

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_stanchion");

/// A command without the environment variables of the caller.
pub(crate) fn command<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Command {
    let mut command = Command::new(BINARY);
    command.args(arguments);
    unset(&mut command);
    command
}

/// Removes the environment variables of the caller, except for the one that says where downloads are.
pub(crate) fn unset(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("STANCHION_") && name != "STANCHION_CACHE" {
            command.env_remove(name);
        }
    }
}

/// Runs a command that must succeed, and returns its output.
pub(crate) fn stdout<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> String {
    let output = command(arguments).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// The single error line of a failed command, and its exit code.
pub(crate) fn failure(output: &Output) -> (String, Option<i32>) {
    let said = text(&output.stderr);
    assert_eq!(said.lines().count(), 1, "one line: {said}");
    assert!(said.starts_with("error: "), "{said}");
    assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
    (said, output.status.code())
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A running operator. Dropping the value ends it.
pub(crate) struct Operator {
    process: Process,
    _scratch: Scratch,
}

impl Operator {
    /// `stanchion run` on the cluster of this kubeconfig, with its own addresses.
    pub(crate) fn start(kubeconfig: &Path, arguments: &[&str]) -> Self {
        Self::start_with(kubeconfig, arguments, &[])
    }

    /// The same with variables, such as `SSL_CERT_FILE`.
    pub(crate) fn start_with(kubeconfig: &Path, arguments: &[&str], variables: &[(&str, &OsStr)]) -> Self {
        let scratch = Scratch::new("stanchion-run-").unwrap();
        let addresses = ["--health-addr", "127.0.0.1:0", "--metrics-addr", "127.0.0.1:0"];
        let mut launch = Launch::new(BINARY, scratch.path().join("log"))
            .args(["run"])
            .args(addresses)
            .args(arguments.iter().copied())
            .env("KUBECONFIG", kubeconfig);
        for (name, value) in variables {
            launch = launch.env(name, value);
        }
        let process = launch.spawn().unwrap();
        Self {
            process,
            _scratch: scratch,
        }
    }

    /// Waits until `/readyz` returns success.
    pub(crate) async fn ready(&self) {
        self.wait_for("the operator to be ready", async || {
            match self.get("health", "/readyz").await {
                Some((200, _)) => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
    }

    /// Waits, and shows the operator's log on failure.
    pub(crate) async fn wait_for<V: wait::Verdict, F: Future<Output = V>>(
        &self,
        what: &str,
        check: impl FnMut() -> F,
    ) -> V::Value {
        let log = self.output();
        wait::within(DEADLINE).showing(&log).eventually(what, check).await
    }

    /// Its log, for a wait that shows the end of it on failure.
    pub(crate) fn output(&self) -> OperatorLog {
        OperatorLog::of_file(self.process.log_path())
    }

    /// Sends a request to one of its servers; `None` if it does not answer yet.
    pub(crate) async fn get(&self, purpose: &str, path: &str) -> Option<(u16, String)> {
        let addr = self.addr(purpose)?;
        let mut connection = TcpStream::connect(addr).await.ok()?;
        let request = format!("GET {path} HTTP/1.0\r\nHost: {addr}\r\n\r\n");
        connection.write_all(request.as_bytes()).await.ok()?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer).await.ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
    }

    /// The value of a series at `/metrics`.
    pub(crate) async fn metric(&self, series: &str) -> Option<f64> {
        let (_, text) = self.get("metrics", "/metrics").await?;
        let value = text
            .lines()
            .find_map(|line| line.strip_prefix(series)?.strip_prefix(' '))?;
        value.parse().ok()
    }

    /// The address of one of its servers, from the log.
    fn addr(&self, purpose: &str) -> Option<SocketAddr> {
        let log = self.process.log();
        let line = log
            .lines()
            .find(|line| line.contains(&format!("{purpose} is answered")))?;
        line.rsplit_once("addr=")?.1.parse().ok()
    }

    pub(crate) fn log(&self) -> String {
        self.process.log()
    }

    pub(crate) fn signal(&mut self, signal: Signal) {
        self.process.signal(signal);
    }

    /// Waits for its end, and returns its exit code.
    pub(crate) async fn ended(&mut self) -> Option<i32> {
        tokio::time::timeout(DEADLINE, self.process.wait())
            .await
            .unwrap_or_else(|_| panic!("it does not end:\n{}", self.process.log()))
            .code()
    }

    /// SIGTERM, and a clean end.
    pub(crate) async fn stop(mut self) {
        self.signal(Signal::Term);
        assert_eq!(self.ended().await, Some(0), "{}", self.log());
    }
}
