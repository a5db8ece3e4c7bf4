//! A Kubernetes cluster for tests.
//!
//! [`Cluster::shared`] is one cluster for all tests of a binary, and under `test-bed` for all binaries of a run. Each
//! test uses its own namespace and filters the audit log by its namespace or user.
//!
//! Every kind of cluster has a directory with the administrator's kubeconfig and an audit log in kube-apiserver's
//! format. `$STANCHION_TEST_CLUSTER` selects the kind.

mod assets;
mod audit;
mod connection;
mod control_plane;
mod flux;
mod kubectl;
mod objects;
mod parts;
mod sandbox;
mod user;

use std::{
    env, fmt,
    path::{Path, PathBuf},
};

use kube::{Client, Config};
use tokio::sync::OnceCell;

use self::{control_plane::ControlPlane, sandbox::InProcess};
use crate::{error::Error, report};

pub use audit::{Audit, Request, Requests};
pub use flux::Flux;
pub use kubectl::Kubectl;
pub use user::{Grant, User, path_rule, rule};

/// The administrator's kubeconfig of a running cluster.
pub const KUBECONFIG_VARIABLE: &str = "STANCHION_TEST_KUBECONFIG";

/// The kind of cluster that tests run on.
const KIND_VARIABLE: &str = "STANCHION_TEST_CLUSTER";

/// The files of a cluster's directory.
const KUBECONFIG: &str = "kubeconfig";
const AUDIT_LOG: &str = "audit.log";

/// The kinds of clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// kube-apiserver and the other programs, from `$KUBEBUILDER_ASSETS` or `make control-plane`.
    Real,
    /// The embedded API server, in this process.
    Sandbox,
}

impl Kind {
    /// The kind that this run uses.
    pub fn chosen() -> Self {
        match env::var(KIND_VARIABLE).as_deref() {
            Ok("sandbox" | "") | Err(_) => Self::Sandbox,
            Ok("real") => Self::Real,
            Ok(other) => panic!("{KIND_VARIABLE}={other}: there are `sandbox` and `real`"),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Real => "real",
            Self::Sandbox => "sandbox",
        })
    }
}

/// A running cluster.
#[derive(Debug)]
pub struct Cluster {
    kind: Kind,
    directory: PathBuf,
    /// Dropped with this value; `None` if another process started the cluster.
    _running: Option<Running>,
}

/// A cluster in this process. Dropping the value ends it.
#[derive(Debug)]
enum Running {
    Real(#[allow(dead_code, reason = "held for its end")] ControlPlane),
    Sandbox(#[allow(dead_code, reason = "held for its end")] InProcess),
}

impl Cluster {
    /// The cluster that all tests of this binary share.
    pub async fn shared() -> &'static Self {
        static SHARED: OnceCell<Cluster> = OnceCell::const_new();
        SHARED
            .get_or_init(async || {
                let cluster = match env::var_os(KUBECONFIG_VARIABLE) {
                    Some(kubeconfig) => Self::at(Path::new(&kubeconfig)),
                    None => Self::start().await,
                };
                let version = cluster.client().await.apiserver_version().await;
                let version = version.map_or_else(|error| error.to_string(), |info| info.git_version);
                report::used("cluster", &format!("{} {version}", cluster.kind));
                cluster
            })
            .await
    }

    /// A separate cluster, for tests that change what all other tests would see.
    pub async fn start() -> Self {
        Self::try_start().await.unwrap_or_else(|error| panic!("{error}"))
    }

    /// [`Cluster::start`] for callers that report the error themselves.
    pub async fn try_start() -> Result<Self, Error> {
        let kind = Kind::chosen();
        let (directory, running) = match kind {
            Kind::Real => {
                let running = ControlPlane::start().await?;
                (running.directory().to_owned(), Running::Real(running))
            }
            Kind::Sandbox => {
                let running = InProcess::start()?;
                (running.directory().to_owned(), Running::Sandbox(running))
            }
        };
        Ok(Self {
            kind,
            directory,
            _running: Some(running),
        })
    }

    fn at(kubeconfig: &Path) -> Self {
        let directory = kubeconfig.parent().unwrap_or(Path::new("/")).to_owned();
        assert!(
            kubeconfig == directory.join(KUBECONFIG) && kubeconfig.is_file(),
            "{KUBECONFIG_VARIABLE}={}: not a file named {KUBECONFIG}",
            kubeconfig.display()
        );
        Self {
            kind: Kind::chosen(),
            directory,
            _running: None,
        }
    }

    /// The kind of the cluster.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The administrator's kubeconfig file.
    pub fn kubeconfig_path(&self) -> PathBuf {
        self.directory.join(KUBECONFIG)
    }

    /// The administrator's configuration, for clients with additional layers.
    pub async fn config(&self) -> Config {
        connection::config(&self.kubeconfig_path()).await
    }

    /// A client of the administrator.
    ///
    /// Each call creates a new one: connections belong to the runtime of the test that opened them.
    pub async fn client(&self) -> Client {
        connection::client(&self.kubeconfig_path()).await
    }

    /// The requests from now on.
    pub fn audit(&self) -> Audit<'_> {
        Audit::from_now(self, &self.directory.join(AUDIT_LOG))
    }
}
