//! Starting and stopping a server.

use std::{
    fmt, fs,
    net::SocketAddr,
    path::PathBuf,
    sync::Mutex,
    time::{Duration, Instant},
};

use tokio::sync::OnceCell;

use super::{
    ADMIN,
    builder::Builder,
    log::{self, Log},
    template::Prepared,
    version::Version,
};
use crate::{
    account::Account,
    certificates::Authority,
    error::Error,
    process::{Launch, Process, Signal},
    scratch::Scratch,
    wait,
};

/// A start takes a tenth of this on an idle machine; a busy one gets time.
const START_DEADLINE: Duration = Duration::from_mins(1);

/// What every server is started with. Nothing here outlives a test, so nothing is synced to disk.
const SETTINGS: [(&str, &str); 10] = [
    ("fsync", "off"),
    ("synchronous_commit", "off"),
    ("full_page_writes", "off"),
    ("shared_buffers", "32MB"),
    ("max_connections", "200"),
    ("listen_addresses", "127.0.0.1"),
    ("unix_socket_directories", ""),
    ("log_statement", "all"),
    ("log_connections", "on"),
    ("log_line_prefix", log::PREFIX),
];

/// A PostgreSQL server that ends with the test.
pub struct Postgres {
    // Before `scratch`: the server must be gone when its directory is removed.
    pub(super) process: Mutex<Option<Process>>,
    pub(super) version: Version,
    pub(super) port: u16,
    pub(super) settings: Vec<(String, String)>,
    pub(super) prepared: Prepared,
    pub(super) account: Option<Account>,
    pub(super) authority: Option<Authority>,
    pub(super) log: PathBuf,
    pub(super) scratch: Scratch,
}

impl Postgres {
    /// A server of one's own.
    pub async fn start(version: Version) -> Self {
        Self::builder(version).start().await
    }

    /// A server of one's own, with settings.
    pub fn builder(version: Version) -> Builder {
        Builder::new(version)
    }

    /// The server of this version that all tests of the binary share; do not stop it.
    pub async fn shared(version: Version) -> &'static Self {
        static SERVERS: [OnceCell<Postgres>; 4] = [const { OnceCell::const_new() }; 4];
        SERVERS[version as usize]
            .get_or_init(|| Self::start(version))
            .await
    }

    /// Its version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Its port on loopback.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its address, for a [`crate::proxy::Proxy`].
    pub fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    /// The authority that signed its certificate, if it offers TLS.
    pub fn authority(&self) -> Option<&Authority> {
        self.authority.as_ref()
    }

    /// What it has logged so far.
    pub fn log(&self) -> Log {
        Log::parse(&fs::read(&self.log).unwrap_or_default())
    }

    /// Fast shutdown: sessions end with SQLSTATE 57P01.
    pub async fn stop(&self) {
        self.end(Signal::Int).await;
    }

    /// Immediate shutdown, as after a power failure.
    pub async fn crash(&self) {
        self.end(Signal::Quit).await;
    }

    /// Starts again after [`Postgres::stop`] or [`Postgres::crash`], on the same port.
    pub async fn resume(&self) {
        self.launch().await.unwrap_or_else(|error| panic!("{error}"));
    }

    /// Stops and starts.
    pub async fn restart(&self) {
        self.stop().await;
        self.resume().await;
    }

    /// Freezes the server's main process, as on a host that hangs: sessions go on, new ones get no answer.
    pub async fn freeze(&self) {
        self.signal(Signal::Stop);
        wait::eventually(START_DEADLINE, "the server to be frozen", async || {
            self.process
                .lock()
                .unwrap()
                .as_ref()
                .is_some_and(Process::is_frozen)
        })
        .await;
    }

    /// Goes on after [`Postgres::freeze`].
    pub fn thaw(&self) {
        self.signal(Signal::Cont);
    }

    /// Sets a parameter of a running server that takes it without a restart.
    pub async fn reload_with(&self, name: &str, value: &str) {
        let value = value.replace('\'', "''");
        self.execute("postgres", &format!("ALTER SYSTEM SET {name} = '{value}'"))
            .await;
        self.execute("postgres", "SELECT pg_reload_conf()").await;
    }

    fn signal(&self, signal: Signal) {
        if let Some(process) = self.process.lock().unwrap().as_mut() {
            process.signal(signal);
        }
    }

    async fn end(&self, signal: Signal) {
        let process = self.process.lock().unwrap().take();
        if let Some(mut process) = process {
            process.signal(signal);
            process.wait().await;
        }
    }

    pub(super) async fn launch(&self) -> Result<(), Error> {
        let own = SETTINGS.iter().map(|&(name, value)| (name, value));
        let given = self
            .settings
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        let mut process = Launch::new(self.prepared.programs.join("postgres"), &self.log)
            .args(["-p".to_owned(), self.port.to_string(), "-D".to_owned()])
            .args([&self.prepared.data])
            .args(own.chain(given).flat_map(|(name, value)| ["-c".to_owned(), format!("{name}={value}")]))
            .directory(self.scratch.path())
            .account(self.account)
            // Immediate, so that shared memory is given back.
            .parting(Signal::Quit)
            .spawn()?;
        let started = Instant::now();
        loop {
            process.check_alive()?;
            match self.connect(ADMIN, super::ADMIN_PASSWORD, "postgres").await {
                Ok(_) => break,
                Err(error) if started.elapsed() > START_DEADLINE => {
                    return Err(Error::Start {
                        what: format!("PostgreSQL {}", self.version),
                        why: error.to_string(),
                        log: crate::error::tail(&self.log),
                    });
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
        *self.process.lock().unwrap() = Some(process);
        Ok(())
    }
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgreSQL {} on port {}", self.version, self.port)
    }
}
