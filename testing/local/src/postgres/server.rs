//! Starts a server.

use std::{
    fs,
    path::PathBuf,
    time::{Duration, Instant},
};

use crate::{
    account::Account,
    error::{Error, tail},
    port,
    process::{Launch, Process, Signal},
};

/// A start takes a tenth of this on an idle machine; a busy one gets time.
const START_DEADLINE: Duration = Duration::from_mins(1);
/// How long the server of a previous, killed run may take to end.
const END_DEADLINE: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// Number of ports to try.
const ATTEMPTS: u32 = 5;

/// Settings of every server: it listens on loopback only.
const SETTINGS: [(&str, &str); 2] = [("listen_addresses", "127.0.0.1"), ("unix_socket_directories", "")];

/// A server that can be started, any number of times.
#[derive(Clone, Debug)]
pub struct Server {
    /// Directory of the programs.
    pub programs: PathBuf,
    /// Its data directory.
    pub data: PathBuf,
    /// The account it runs as.
    pub account: Option<Account>,
    /// Its port on loopback.
    pub port: u16,
    /// Its parameters, as in `postgresql.conf`.
    pub settings: Vec<(String, String)>,
    /// Where its log goes.
    pub log: PathBuf,
}

impl Server {
    /// Starts it on a free port, and waits until it answers.
    pub async fn start(&mut self) -> Result<Process, Error> {
        for _ in 1..ATTEMPTS {
            self.port = port::free()?;
            match self.launch().await {
                // Another process has taken the port since it was chosen.
                Err(Error::Start { log, .. }) if log.contains("Address already in use") => {}
                ended => return ended,
            }
        }
        self.launch().await
    }

    /// Starts it on its port, and waits until it answers.
    pub async fn launch(&self) -> Result<Process, Error> {
        let began = Instant::now();
        while self.is_in_use() && began.elapsed() < END_DEADLINE {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        let own = SETTINGS.iter().map(|&(name, value)| (name, value));
        let given = self
            .settings
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        let mut process = Launch::new(self.programs.join("postgres"), &self.log)
            .args(["-p".to_owned(), self.port.to_string(), "-D".to_owned()])
            .args([&self.data])
            .args(own.chain(given).flat_map(|(name, value)| ["-c".to_owned(), format!("{name}={value}")]))
            .directory(&self.data)
            .account(self.account)
            // Immediate shutdown, so that shared memory is released.
            .parting(Signal::Quit)
            .spawn()?;
        let started = Instant::now();
        while !self.answers(process.pid()) {
            process.check_alive()?;
            if started.elapsed() > START_DEADLINE {
                return Err(Error::Start {
                    what: format!("PostgreSQL in {}", self.data.display()),
                    why: "it takes no connections".to_owned(),
                    log: tail(&self.log),
                });
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        Ok(process)
    }

    /// Whether the server reports that it is ready: the first line of its file is the process id, the eighth one the
    /// state. A file that a crashed server left behind names another process.
    fn answers(&self, pid: u32) -> bool {
        let text = self.state_file();
        let mut lines = text.lines();
        let first = lines.next().and_then(|line| line.trim().parse().ok());
        first == Some(pid) && lines.nth(6).is_some_and(|line| line.trim() == "ready")
    }

    /// Whether the process in the file works in this directory; its id may belong to any process by now.
    fn is_in_use(&self) -> bool {
        let text = self.state_file();
        let place = text
            .lines()
            .next()
            .map(|pid| fs::read_link(format!("/proc/{}/cwd", pid.trim())));
        matches!((place, self.data.canonicalize()), (Some(Ok(place)), Ok(data)) if place == data)
    }

    /// The file in which a server writes its process id and state.
    fn state_file(&self) -> String {
        fs::read_to_string(self.data.join("postmaster.pid")).unwrap_or_default()
    }
}
