//! A Kubernetes cluster for tests.
//!
//! [`Cluster::shared`] is one cluster for all tests of a binary, and under `test-bed` for all binaries
//! of a run. Each test takes a namespace of its own and filters the audit log by its namespace or user.
//!
//! A kind of cluster joins by being a directory: a kubeconfig of an administrator and, beside it, an
//! audit log in kube-apiserver's format. `$STANCHION_TEST_CLUSTER` says which kind a run uses.

mod assets;
mod audit;
mod connection;
mod control_plane;
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
pub use kubectl::Kubectl;
pub use user::{Grant, User, path_rule, rule};

/// Names the administrator's kubeconfig of a cluster that runs already.
pub const KUBECONFIG_VARIABLE: &str = "STANCHION_TEST_KUBECONFIG";

/// Says which kind of cluster tests run on.
const KIND_VARIABLE: &str = "STANCHION_TEST_CLUSTER";

/// The files of a cluster's directory.
const KUBECONFIG: &str = "kubeconfig";
const AUDIT_LOG: &str = "audit.log";

/// The kinds of cluster that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// kube-apiserver and its companions, from `$KUBEBUILDER_ASSETS` or `make control-plane`.
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

/// A cluster that answers.
#[derive(Debug)]
pub struct Cluster {
    kind: Kind,
    directory: PathBuf,
    /// What ends with this value; nothing, if somebody else started the cluster.
    _running: Option<Running>,
}

/// A cluster of this process; it ends with the value.
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

    /// A cluster of one's own, for tests that change what all would see.
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

    /// What kind it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The administrator's kubeconfig file.
    pub fn kubeconfig_path(&self) -> PathBuf {
        self.directory.join(KUBECONFIG)
    }

    /// The administrator's configuration, to build clients with layers from.
    pub async fn config(&self) -> Config {
        connection::config(&self.kubeconfig_path()).await
    }

    /// A client of the administrator.
    ///
    /// Each call makes a new one: connections belong to the runtime of the test that opened them.
    pub async fn client(&self) -> Client {
        connection::client(&self.kubeconfig_path()).await
    }

    /// What is requested from now on.
    pub fn audit(&self) -> Audit<'_> {
        Audit::from_now(self, &self.directory.join(AUDIT_LOG))
    }
}
