//! Starting and stopping a server.

use std::{fmt, fs, net::SocketAddr, sync::Mutex, time::Duration};

use stanchion_local::postgres::{Server, Version};
use tokio::sync::OnceCell;

use super::{builder::Builder, log::Log, sessions::Sessions};
use crate::{
    certificates::Authority,
    process::{Process, Signal},
    scratch::Scratch,
    wait,
};

/// Freezing takes a moment, and longer on a busy machine.
const FROZEN_WITHIN: Duration = Duration::from_mins(1);

/// A PostgreSQL server that ends with the test.
pub struct Postgres {
    // Before `scratch`: the server must have ended when its directory is removed.
    pub(super) process: Mutex<Option<Process>>,
    pub(super) version: Version,
    pub(super) server: Server,
    pub(super) authority: Option<Authority>,
    pub(super) sessions: Option<Sessions>,
    // Removed on drop.
    pub(super) _scratch: Scratch,
}

impl Postgres {
    /// A separate server.
    pub async fn start(version: Version) -> Self {
        Self::builder(version).start().await
    }

    /// A separate server, with settings.
    pub fn builder(version: Version) -> Builder {
        Builder::new(version)
    }

    /// The server of this version that all tests of the binary share; do not stop it.
    pub async fn shared(version: Version) -> &'static Self {
        static SERVERS: [OnceCell<Postgres>; 4] = [const { OnceCell::const_new() }; 4];
        SERVERS[version as usize]
            .get_or_init(async || Self {
                sessions: Some(Sessions::default()),
                ..Self::start(version).await
            })
            .await
    }

    /// Its version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Its port on loopback.
    pub fn port(&self) -> u16 {
        self.server.port
    }

    /// Its address, for a [`crate::proxy::Proxy`].
    pub fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.server.port).into()
    }

    /// The CA that signed its certificate, if it offers TLS.
    pub fn authority(&self) -> Option<&Authority> {
        self.authority.as_ref()
    }

    /// The log so far.
    pub fn log(&self) -> Log {
        Log::parse(&fs::read(&self.server.log).unwrap_or_default())
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
        let process = self.server.launch().await;
        let process = process.unwrap_or_else(|error| panic!("{error}"));
        *self.process.lock().unwrap() = Some(process);
    }

    /// Stops and starts.
    pub async fn restart(&self) {
        self.stop().await;
        self.resume().await;
    }

    /// Freezes the server's main process, as on a host that hangs: sessions continue, new ones get no answer.
    pub async fn freeze(&self) {
        self.signal(Signal::Stop);
        wait::eventually(FROZEN_WITHIN, "the server to be frozen", async || {
            self.process
                .lock()
                .unwrap()
                .as_ref()
                .is_some_and(Process::is_frozen)
        })
        .await;
    }

    /// Continues after [`Postgres::freeze`].
    pub fn thaw(&self) {
        self.signal(Signal::Cont);
    }

    /// Sets a parameter that does not need a restart.
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
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgreSQL {} on port {}", self.version, self.server.port)
    }
}
