//! Why the sandbox does not stand, or what in it is not ready.

use std::io;
use std::path::PathBuf;

use stanchion_kernel::problem::chain;
use stanchion_kernel::telemetry::logs::LogsError;
use thiserror::Error;

use crate::output::OutputError;
use crate::run::RunError;

/// Why `stanchion sandbox` failed.
#[derive(Debug, Error)]
pub(crate) enum SandboxError {
    /// A directory or a file.
    #[error("cannot use {}: {source}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Two sandboxes would overwrite each other's state.
    #[error("another sandbox uses {}; end it, or choose another folder with --data", .0.display())]
    InUse(PathBuf),
    /// As root, PostgreSQL runs as somebody who cannot get to its data.
    #[error(
        "PostgreSQL does not run as root, and other users cannot enter {}; choose another folder with --data, or \
         run this as an ordinary user", .0.display()
    )]
    Closed(PathBuf),
    /// The API server.
    #[error(transparent)]
    Api(#[from] stanchion_sandbox::StartError),
    /// The API server's own kubeconfig.
    #[error("the sandbox's kubeconfig cannot be used: {0}")]
    Kubeconfig(#[from] kube::config::KubeconfigError),
    /// PostgreSQL's processes and files.
    #[error(transparent)]
    Local(#[from] stanchion_local::Error),
    /// What PostgreSQL says.
    #[error("cannot prepare the database: {0}")]
    Postgres(#[from] stanchion_postgres::Error),
    /// The address of PostgreSQL.
    #[error("cannot address the database: {0}")]
    Target(#[from] stanchion_postgres::TargetError),
    /// An object that cannot be read or written down.
    #[error("an example cannot be read: {0}")]
    Manifest(String),
    /// The API server refuses an object.
    #[error("cannot apply {object}: {why}")]
    Apply {
        /// `PostgresUser/alice`.
        object: String,
        /// The server's words.
        why: String,
    },
    /// The API server does not answer a question.
    #[error("cannot look at the sandbox: {}", chain(.0))]
    Look(#[from] Box<kube::Error>),
    /// The operator.
    #[error("the operator ended: {0}")]
    Operator(#[from] RunError),
    /// The words that the operator is started with.
    #[error("the operator cannot be started: {0}")]
    Words(#[from] clap::Error),
    /// `--once`, and the time is over.
    #[error("not ready within {seconds} seconds: {reasons}")]
    NotReady {
        /// How long.
        seconds: u64,
        /// Each object that is not ready, and why.
        reasons: String,
    },
    /// Something else of the system.
    #[error("cannot start: {0}")]
    System(#[from] io::Error),
    /// The log.
    #[error(transparent)]
    Logs(#[from] LogsError),
    /// Standard output.
    #[error(transparent)]
    Output(#[from] OutputError),
}

impl From<kube::Error> for SandboxError {
    fn from(error: kube::Error) -> Self {
        Self::Look(Box::new(error))
    }
}
