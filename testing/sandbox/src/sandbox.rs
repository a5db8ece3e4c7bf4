//! Starts and stops a sandbox.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::admission::Webhooks;
use crate::audit::Audit;
use crate::auth::User;
use crate::auth::tokens::Tokens;
use crate::clock::Clock;
use crate::controllers::{self, Logs, Mapping, Workloads};
use crate::faults::Faults;
use crate::lifecycle::ServiceNumbers;
use crate::private;
use crate::resource::Registry;
use crate::server::Server;
use crate::service::InProcessService;
use crate::store::{HISTORY, Store};
use crate::tls::{self, Listening, TlsError};
use crate::write_locks::WriteLocks;

/// Why a sandbox did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The TLS listener did not start.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A file could not be read or written.
    #[error("cannot use {path}: {source}")]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
}

/// Options of a sandbox.
#[derive(Debug, Clone)]
pub struct Builder {
    seed: Option<u64>,
    wall: Option<Timestamp>,
    rbac: bool,
    workloads: Option<Duration>,
    commands: Vec<Mapping>,
    audit: Option<PathBuf>,
    state: Option<PathBuf>,
    history: usize,
    users: Vec<(String, User)>,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            seed: None,
            wall: None,
            rbac: true,
            workloads: Some(Duration::ZERO),
            commands: Vec::new(),
            audit: None,
            state: None,
            history: HISTORY,
            users: Vec::new(),
        }
    }
}

impl Builder {
    /// Makes names and uids repeatable.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// The time of day at the start; then it follows tokio's clock.
    #[must_use]
    pub fn clock(mut self, start: Timestamp) -> Self {
        self.wall = Some(start);
        self
    }

    /// Whether RBAC is enforced. Default: true.
    #[must_use]
    pub fn rbac(mut self, enforced: bool) -> Self {
        self.rbac = enforced;
        self
    }

    /// How long a simulated pod takes to become ready, or `None` for no simulation at all.
    #[must_use]
    pub fn workloads(mut self, pod_start: Option<Duration>) -> Self {
        self.workloads = pod_start;
        self
    }

    /// Runs containers whose image name contains `image` as this local command, with the arguments and the environment
    /// of the container.
    #[must_use]
    pub fn command(mut self, image: &str, command: &[&str]) -> Self {
        let command = command.iter().map(|&word| word.to_owned()).collect();
        self.commands.push((image.to_owned(), command));
        self
    }

    /// Writes one JSON line per request to this file.
    #[must_use]
    pub fn audit_log(mut self, path: impl Into<PathBuf>) -> Self {
        self.audit = Some(path.into());
        self
    }

    /// Keeps the objects in this file between runs.
    #[must_use]
    pub fn state(mut self, path: impl Into<PathBuf>) -> Self {
        self.state = Some(path.into());
        self
    }

    /// Keeps so many changes of each kind in memory, for watches that resume. Default: 20,000.
    #[must_use]
    pub fn history(mut self, changes: usize) -> Self {
        self.history = changes;
        self
    }

    /// Adds a user with a bearer token.
    #[must_use]
    pub fn user(mut self, token: &str, user: User) -> Self {
        self.users.push((token.to_owned(), user));
        self
    }

    /// Starts the server and its controllers on the current runtime.
    pub fn start(self) -> Result<Sandbox, StartError> {
        let audit = match &self.audit {
            Some(path) => Audit::to_file(path).map_err(|source| StartError::File {
                path: path.clone(),
                source,
            })?,
            None => Audit::default(),
        };
        let server = Arc::new(Server {
            store: Arc::new(Store::with_history(self.history)),
            registry: Registry::new(),
            clock: Clock::new(self.seed, self.wall),
            tokens: Tokens::default(),
            rbac: self.rbac,
            faults: Faults::default(),
            audit,
            webhooks: Webhooks,
            logs: Logs::default(),
            write_locks: WriteLocks::default(),
            services: ServiceNumbers::default(),
        });
        for (token, user) in self.users {
            server.tokens.add(&token, user);
        }
        if let Some(path) = self.state {
            server
                .store
                .keep(&path)
                .map_err(|source| StartError::File { path, source })?;
            server.services.learn(&server.store);
        }
        let mut tasks = JoinSet::new();
        let commands = self.commands;
        let workloads = self.workloads.map(|pod_start| Workloads { pod_start, commands });
        controllers::start(&server, workloads, &mut tasks);
        Ok(Sandbox {
            server,
            tasks,
            listening: None,
        })
    }
}

/// A running API server. Dropping the value ends it.
#[derive(Debug)]
pub struct Sandbox {
    server: Arc<Server>,
    // Dropping the set aborts the controllers.
    #[allow(dead_code)]
    tasks: JoinSet<()>,
    listening: Option<Listening>,
}

impl Sandbox {
    /// A sandbox to configure.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// An in-process service of the server. All its requests have this user.
    pub fn service_for(&self, user: User) -> InProcessService {
        InProcessService::new(self.server.clone(), Some(user))
    }

    /// A client with all permissions.
    pub fn client(&self) -> kube::Client {
        self.client_as(User::admin())
    }

    /// A client with this user.
    pub fn client_as(&self, user: User) -> kube::Client {
        kube::Client::new(self.service_for(user), "default")
    }

    /// The fault injection.
    pub fn faults(&self) -> &Faults {
        &self.server.faults
    }

    /// All resource requests so far, in the format of the original's audit log.
    pub fn audit(&self) -> Vec<Value> {
        self.server.audit.lines()
    }

    /// Drops the history: open watches continue, but no watch can resume from an older version.
    pub fn compact(&self) {
        self.server.store.compact();
    }

    /// Starts the TLS listener on loopback; port 0 selects any free one.
    pub async fn listen(&mut self, port: u16) -> Result<SocketAddr, StartError> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let listening = tls::listen(InProcessService::new(self.server.clone(), None), address).await?;
        let address = listening.address;
        self.listening = Some(listening);
        Ok(address)
    }

    /// The CA certificate of the TLS listener; `None` if it is not started.
    pub fn authority(&self) -> Option<&str> {
        self.listening
            .as_ref()
            .map(|listening| listening.authority.as_str())
    }

    /// A kubeconfig for a user, with a new token; `None` if the TLS listener is not started.
    pub fn kubeconfig(&self, user: User) -> Option<String> {
        let listening = self.listening.as_ref()?;
        let token = format!("sandbox-{}", self.server.clock.uid());
        self.server.tokens.add(&token, user);
        Some(tls::kubeconfig(listening.address, &listening.authority, &token))
    }

    /// Writes the administrator's kubeconfig, readable by its owner only.
    pub fn write_kubeconfig(&self, path: &Path) -> Result<(), StartError> {
        let config = self.kubeconfig(User::admin()).unwrap_or_default();
        private::write(path, &config).map_err(|source| StartError::File {
            path: path.to_owned(),
            source,
        })
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        if let Some(listening) = &self.listening {
            listening.task.abort();
        }
    }
}
