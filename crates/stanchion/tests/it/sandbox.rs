//! `stanchion sandbox`: what it promises to somebody who has no cluster, and that nothing stays when it ends.

use std::ffi::{OsStr, OsString};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use stanchion_testkit::process::{Launch, Process, Signal};
use stanchion_testkit::scratch::Scratch;
use stanchion_testkit::{report, unique, wait};
use tokio::net::TcpListener;

use crate::DEADLINE;
use crate::operator::{BINARY, command, failure, text};

/// A directory for everything that the sandbox makes, so that what it leaves behind shows.
struct Place {
    scratch: Scratch,
}

impl Place {
    fn new() -> Self {
        let scratch = Scratch::new("stanchion-it-").unwrap();
        let place = Self { scratch };
        fs::create_dir(place.temporary()).unwrap();
        // As root the sandbox runs PostgreSQL under another account, which must get there.
        for folder in [place.scratch.path(), &place.temporary()] {
            fs::set_permissions(folder, Permissions::from_mode(0o711)).unwrap();
        }
        place
    }

    fn temporary(&self) -> PathBuf {
        self.scratch.path().join("tmp")
    }

    fn file(&self, name: &str) -> String {
        self.scratch.path().join(name).display().to_string()
    }

    /// Runs it to its end.
    async fn run(&self, arguments: &[&str]) -> Output {
        let mut command = command([&["sandbox"], arguments].concat());
        command.env("TMPDIR", self.temporary());
        tokio::task::spawn_blocking(move || command.output().unwrap())
            .await
            .unwrap()
    }

    /// Starts it.
    fn start(&self, arguments: &[&str]) -> Running {
        self.start_with(arguments, &path())
    }

    fn start_with(&self, arguments: &[&str], path: &OsStr) -> Running {
        let process = Launch::new(BINARY, self.file(&unique::name("output")))
            .args(["sandbox"])
            .args(arguments.iter().copied())
            .env("TMPDIR", self.temporary())
            .env("PATH", path)
            .spawn()
            .unwrap();
        Running { process }
    }

    /// Waits until there is no file and no process of the sandbox any more.
    async fn is_clean(&self) {
        wait::eventually(DEADLINE, "nothing to be left behind", async || {
            let mut left: Vec<String> = fs::read_dir(self.temporary())
                .unwrap()
                .map(|entry| entry.unwrap().path().display().to_string())
                .collect();
            left.extend(processes_of(&self.temporary()));
            if left.is_empty() {
                Ok(())
            } else {
                Err(left.join(", "))
            }
        })
        .await;
    }
}

/// Processes that were started with a path in this directory.
fn processes_of(folder: &Path) -> Vec<String> {
    let folder = folder.display().to_string();
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| fs::read(entry.unwrap().path().join("cmdline")).ok())
        .map(|words| text(&words).replace('\0', " "))
        .filter(|words| words.contains(&folder))
        .collect()
}

/// A sandbox that runs; it ends with this value.
struct Running {
    process: Process,
}

impl Running {
    /// Waits until it has said this.
    async fn says(&self, words: &str) {
        wait::eventually(DEADLINE, words, async || {
            let said = self.process.log();
            if said.contains(words) { Ok(()) } else { Err(said) }
        })
        .await;
    }

    /// The line that it has printed with all of these words.
    fn line(&self, words: &[&str]) -> String {
        let said = self.process.log();
        said.lines()
            .find(|line| words.iter().all(|word| line.contains(word)))
            .unwrap_or_else(|| panic!("no line with {words:?} in:\n{said}"))
            .trim()
            .to_owned()
    }

    /// Runs a line in the shell of somebody who has followed the first hint.
    async fn shell(&self, line: &str) -> Result<String, String> {
        let script = format!("{}\n{line}", self.line(&["export KUBECONFIG="]));
        let output = tokio::process::Command::new("bash")
            .args(["-c", &script])
            .env("PATH", path())
            .kill_on_drop(true)
            .output()
            .await
            .unwrap();
        if output.status.success() {
            Ok(text(&output.stdout).trim().to_owned())
        } else {
            Err(text(&output.stderr))
        }
    }

    async fn end(mut self, signal: Signal) -> Option<i32> {
        self.process.signal(signal);
        let ended = tokio::time::timeout(DEADLINE, self.process.wait()).await;
        ended
            .unwrap_or_else(|_| panic!("it does not end:\n{}", self.process.log()))
            .code()
    }
}

/// `$PATH`, and after it the folder of the control plane's programs, where kubectl is.
fn path() -> OsString {
    let own = std::env::var_os("PATH").unwrap_or_default();
    let assets = std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from);
    std::env::join_paths(std::env::split_paths(&own).chain(assets)).unwrap()
}

/// Whether the machine has these programs; the run's report says when a test was left out for want of one.
fn has(programs: &[&str]) -> bool {
    let there =
        |program: &&&str| !std::env::split_paths(&path()).any(|folder| folder.join(program).is_file());
    match programs.iter().find(there) {
        None => true,
        Some(missing) => {
            report::skipped("stanchion sandbox, as others see it", &format!("no {missing}"));
            false
        }
    }
}

#[tokio::test]
async fn once_ends_when_all_is_ready() {
    let place = Place::new();
    let output = place.run(&["--once"]).await;
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}{}", text(&output.stderr));
    for words in [
        "never for production",
        "All ready after",
        "export KUBECONFIG=",
        "psql ",
    ] {
        assert!(said.contains(words), "no {words:?} in:\n{said}");
    }
    for name in ["alice", "orders", "reporting"] {
        let line = format!("PostgresUser/{name}  Ready [");
        assert!(said.contains(&line), "no {line:?} in:\n{said}");
    }
    assert!(
        !said.contains('\x1b'),
        "no colours where there is no terminal:\n{said}"
    );
    place.is_clean().await;
}

#[tokio::test]
async fn what_it_prints_can_be_done() {
    if !has(&["kubectl", "psql"]) {
        return;
    }
    let place = Place::new();
    let sandbox = place.start(&[]);
    sandbox.says("Ctrl-C ends everything").await;
    let log_in = sandbox.line(&["psql ", "secret orders-db"]);
    let who = sandbox
        .shell(&format!("{log_in} -Atc 'SELECT current_user'"))
        .await;
    assert_eq!(who.as_deref(), Ok("orders"));
    let read = sandbox
        .shell(&sandbox.line(&["TABLE sales.orders"]))
        .await
        .unwrap();
    assert!(read.contains("rocket skates"), "{read}");
    sandbox.shell(&sandbox.line(&["ALTER ROLE"])).await.unwrap();
    sandbox.says("DriftCorrected").await;
    sandbox
        .shell(&sandbox.line(&["kubectl delete secret"]))
        .await
        .unwrap();
    wait::eventually(DEADLINE, "the Secret to come back", async || {
        sandbox.shell(&format!("{log_in} -c ''")).await
    })
    .await;
    let refused = sandbox
        .shell(&sandbox.line(&["kubectl patch"]))
        .await
        .unwrap_err();
    assert!(refused.contains("immutable"), "{refused}");
    sandbox
        .shell(&sandbox.line(&["kubectl delete pguser"]))
        .await
        .unwrap();
    sandbox.says("PostgresUser/reporting  gone").await;
    assert_eq!(sandbox.end(Signal::Int).await, Some(0));
    place.is_clean().await;
}

#[tokio::test]
async fn somebody_without_kubectl_can_log_in_all_the_same() {
    if !has(&["psql"]) {
        return;
    }
    let place = Place::new();
    let bare = place.file("bin");
    fs::create_dir(&bare).unwrap();
    for program in ["rm", "sleep"] {
        symlink(Path::new("/bin").join(program), Path::new(&bare).join(program)).unwrap();
    }
    let sandbox = place.start_with(&[], OsStr::new(&bare));
    sandbox.says("Ctrl-C ends everything").await;
    sandbox.says("kubectl is not in PATH").await;
    // It has not found psql either, and says its name all the same, or where the server's own is.
    let log_in = sandbox.line(&["psql", "service=orders-db"]);
    let who = sandbox
        .shell(&format!("{log_in} -Atc 'SELECT current_user'"))
        .await;
    assert_eq!(who.as_deref(), Ok("orders"));
    assert_eq!(sandbox.end(Signal::Int).await, Some(0));
    place.is_clean().await;
}

#[tokio::test]
async fn killed_it_leaves_nothing_behind_either() {
    let place = Place::new();
    let sandbox = place.start(&[]);
    sandbox.says("PostgreSQL   127.0.0.1").await;
    assert_ne!(processes_of(&place.temporary()), Vec::<String>::new());
    sandbox.end(Signal::Kill).await;
    place.is_clean().await;
}

#[tokio::test]
async fn the_api_alone_answers_kubectl_until_sigterm() {
    if !has(&["kubectl"]) {
        return;
    }
    let place = Place::new();
    let kubeconfig = place.file("kubeconfig");
    let sandbox = place.start(&["--api-only", "--kubeconfig", &kubeconfig]);
    wait::eventually(DEADLINE, "the kubeconfig", async || {
        Path::new(&kubeconfig).exists()
    })
    .await;
    // It is written when the server answers: the first question counts.
    let names = ask(&kubeconfig, "get namespaces -o name");
    assert!(names.contains("namespace/default"), "{names}");
    let kinds = ask(&kubeconfig, "api-resources -o name");
    assert!(!kinds.contains("db.example.com"), "nothing is installed: {kinds}");
    assert_eq!(sandbox.end(Signal::Term).await, Some(0));
    assert!(!Path::new(&kubeconfig).exists());
    place.is_clean().await;
}

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

#[tokio::test]
async fn what_is_kept_is_there_again() {
    if !has(&["kubectl", "psql"]) {
        return;
    }
    let place = Place::new();
    let (data, kubeconfig) = (place.file("data"), place.file("kubeconfig"));
    let kept = ["--data", &data, "--kubeconfig", &kubeconfig];
    let sandbox = place.start(&kept);
    sandbox.says("Ctrl-C ends everything").await;
    let admin = sandbox
        .line(&["ALTER ROLE"])
        .replace("ALTER ROLE orders NOLOGIN", "CREATE TABLE sales.kept ()");
    sandbox.shell(&admin).await.unwrap();
    ask(&kubeconfig, "delete pguser alice");
    let uid = ask(&kubeconfig, "get pguser orders -o jsonpath={.metadata.uid}");

    let output = place.run(&["--api-only", "--data", &data]).await;
    let (line, code) = failure(&output);
    assert!(line.contains("another sandbox uses") && code == Some(1), "{line}");
    assert_eq!(sandbox.end(Signal::Term).await, Some(0));

    let sandbox = place.start(&kept);
    sandbox.says("Ctrl-C ends everything").await;
    assert_eq!(
        ask(&kubeconfig, "get pguser orders -o jsonpath={.metadata.uid}"),
        uid
    );
    let users = ask(&kubeconfig, "get pguser -o name");
    assert!(
        !users.contains("alice"),
        "what was deleted stays deleted: {users}"
    );
    let log_in = sandbox.line(&["psql ", "secret orders-db"]);
    sandbox.shell(&format!("{log_in} -c ''")).await.unwrap();
    let admin = admin.replace("CREATE TABLE sales.kept ()", "TABLE sales.kept");
    sandbox.shell(&admin).await.unwrap();
    assert_eq!(sandbox.end(Signal::Term).await, Some(0));
    place.is_clean().await;
}

#[tokio::test]
async fn what_cannot_be_is_said_in_one_line() {
    let place = Place::new();
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let (line, code) = failure(&place.run(&["--api-only", "--port", &port]).await);
    assert!(line.contains(&port), "{line}");
    assert_eq!(code, Some(1));
    let (line, code) = failure(&place.run(&["--api-only", "--once"]).await);
    assert!(line.contains("--api-only") && line.contains("--once"), "{line}");
    assert_eq!(code, Some(2));
    place.is_clean().await;
}
