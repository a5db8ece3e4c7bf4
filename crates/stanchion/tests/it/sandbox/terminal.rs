//! The demo in a terminal, ended with Ctrl-C.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use stanchion_testkit::wait;
use tokio::process::Child;

use super::directory::{Place, processes_of};
use super::{has, path};
use crate::DEADLINE;
use crate::operator::{BINARY, text, unset};

#[tokio::test]
async fn ctrl_c_leaves_nothing_behind() {
    if !has(&["setsid", "stty"]) {
        return;
    }
    let place = Place::new();
    let kubeconfig = place.file("kubeconfig");
    let mut terminal = Terminal::start(&place, &["--kubeconfig", &kubeconfig]);
    terminal.shows("Ctrl-C ends everything").await;
    let shown = terminal.shown();
    assert!(
        shown.contains("\x1b[?7l"),
        "a picture, as a terminal gets it:\n{shown}"
    );
    assert!(Path::new(&kubeconfig).exists());
    let running = processes_of(&place.temporary()).join("\n");
    assert!(running.contains("postgres"), "{running}");

    terminal.press(CTRL_C);
    assert_eq!(terminal.ended().await, Some(0), "{}", terminal.shown());
    place.is_clean().await;
    assert!(!Path::new(&kubeconfig).exists());
    assert_eq!(altered(&terminal.shown()), Vec::<String>::new());
}

/// The terminal sends it to all foreground programs, also to those that the sandbox is waiting for.
#[tokio::test]
async fn ctrl_c_at_once_leaves_nothing_behind_either() {
    if !has(&["setsid", "stty"]) {
        return;
    }
    let place = Place::new();
    let mut terminal = Terminal::start(&place, &[]);
    terminal.shows("API server").await;
    terminal.press(CTRL_C);
    assert_eq!(terminal.ended().await, Some(0), "{}", terminal.shown());
    place.is_clean().await;
    assert_eq!(altered(&terminal.shown()), Vec::<String>::new());
}

/// The byte of the key.
const CTRL_C: u8 = 3;

/// What a user's shell does: it gives the terminal to a command, and takes it back.
const SHELL: &str = r#"
set -m
before=$(stty -g)
"$@"; status=$?
[ "$(stty -g)" = "$before" ] || echo "left with other settings: $(stty -a)"
exit "$status"
"#;

/// A terminal with a shell that runs the sandbox. Dropping the value ends all of it.
struct Terminal {
    keyboard: Arc<File>,
    screen: Arc<Mutex<Vec<u8>>>,
    shell: Child,
}

impl Terminal {
    fn start(place: &Place, arguments: &[&str]) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let ours = openpt(flags).unwrap();
        unlockpt(&ours).unwrap();
        let theirs = ioctl_tiocgptpeer(&ours, flags).unwrap();
        // A separate session with this terminal: otherwise Ctrl-C would be a plain character.
        let mut shell = Command::new("setsid");
        shell
            .args(["--ctty", "sh", "-c", SHELL, "sh", BINARY, "sandbox"])
            .args(arguments)
            .env("TMPDIR", place.temporary())
            .env("PATH", path())
            .stdin(Stdio::from(theirs.try_clone().unwrap()))
            .stdout(Stdio::from(theirs.try_clone().unwrap()))
            .stderr(Stdio::from(theirs));
        unset(&mut shell);
        // When the shell ends, foreground processes get SIGHUP.
        let shell = tokio::process::Command::from(shell)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let keyboard = Arc::new(File::from(ours));
        let screen = Arc::new(Mutex::new(Vec::new()));
        let (output, seen) = (Arc::clone(&keyboard), Arc::clone(&screen));
        thread::spawn(move || {
            let mut piece = [0; 4096];
            // An error means that no process has the terminal open any more.
            while let Ok(length @ 1..) = (&*output).read(&mut piece) {
                seen.lock().unwrap().extend_from_slice(&piece[..length]);
            }
        });
        Self {
            keyboard,
            screen,
            shell,
        }
    }

    fn press(&self, key: u8) {
        (&*self.keyboard).write_all(&[key]).unwrap();
    }

    /// Everything that was written to it.
    fn shown(&self) -> String {
        text(&self.screen.lock().unwrap())
    }

    async fn shows(&self, words: &str) {
        wait::eventually(DEADLINE, words, async || {
            let shown = self.shown();
            if shown.contains(words) { Ok(()) } else { Err(shown) }
        })
        .await;
    }

    /// Waits for the end, and returns the exit code.
    async fn ended(&mut self) -> Option<i32> {
        let ended = tokio::time::timeout(DEADLINE, self.shell.wait()).await;
        ended
            .unwrap_or_else(|_| panic!("it does not end:\n{}", self.shown()))
            .unwrap()
            .code()
    }
}

/// The differences from a fresh terminal after this output.
fn altered(shown: &str) -> Vec<String> {
    /// Modes that are on in a fresh terminal: wrapping and the cursor; all others are off.
    const ON: [&str; 2] = ["7", "25"];
    let mut modes = BTreeMap::new();
    let mut colour = "0";
    for sequence in shown.split("\x1b[").skip(1) {
        let end = sequence.find(|character: char| character.is_ascii_alphabetic());
        let (parameters, rest) = sequence.split_at(end.unwrap_or(sequence.len()));
        match (parameters.strip_prefix('?'), rest.chars().next()) {
            (Some(mode), Some(switch @ ('h' | 'l'))) => {
                modes.insert(mode, switch);
            }
            (None, Some('m')) => colour = parameters,
            _ => {}
        }
    }
    let modes = modes
        .into_iter()
        .filter(|&(mode, switch)| (switch == 'h') != ON.contains(&mode))
        .map(|(mode, switch)| format!("mode {mode}: {switch}"));
    let colour = Some(format!("colour {colour}")).filter(|_| !["", "0"].contains(&colour));
    let settings = shown
        .lines()
        .find(|line| line.starts_with("left with other settings"));
    modes.chain(colour).chain(settings.map(str::to_owned)).collect()
}

#[test]
fn a_terminal_that_is_left_altered_is_found() {
    assert_eq!(
        altered("\x1b[?7l\x1b[32mx\x1b[0m\x1b[?7h\x1b[2A\x1b[J"),
        Vec::<String>::new()
    );
    assert_eq!(
        altered("\x1b[?25l\x1b[?1049h\x1b[31mx\r\nleft with other settings: -echo\r\n"),
        [
            "mode 1049: h",
            "mode 25: l",
            "colour 31",
            "left with other settings: -echo"
        ]
    );
}
