//! Errors of the sandbox.

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
    /// A directory or a file cannot be used.
    #[error("cannot use {}: {source}", path.display())]
    File {
        /// The path.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Two sandboxes would overwrite each other's state.
    #[error("another sandbox uses {}; end it, or choose another folder with --data", .0.display())]
    InUse(PathBuf),
    /// As root, PostgreSQL runs under an account that cannot access its data.
    #[error(
        "PostgreSQL does not run as root, and other users cannot enter {}; choose another folder with --data, or \
         run this as an ordinary user", .0.display()
    )]
    Closed(PathBuf),
    /// The page did not start.
    #[error(transparent)]
    Page(#[from] stanchion_ui::ServerError),
    /// The API server did not start.
    #[error(transparent)]
    Api(#[from] stanchion_sandbox::StartError),
    /// The API server's kubeconfig is invalid.
    #[error("the sandbox's kubeconfig cannot be used: {0}")]
    Kubeconfig(#[from] kube::config::KubeconfigError),
    /// PostgreSQL's processes or files failed.
    #[error(transparent)]
    Local(#[from] stanchion_local::Error),
    /// PostgreSQL returned an error.
    #[error("cannot prepare the database: {0}")]
    Postgres(#[from] stanchion_postgres::Error),
    /// The address of PostgreSQL is invalid.
    #[error("cannot address the database: {0}")]
    Target(#[from] stanchion_postgres::ConnectionConfigError),
    /// An object cannot be parsed or serialized.
    #[error("an example cannot be read: {0}")]
    Manifest(String),
    /// The API server rejected an object.
    #[error("cannot apply {object}: {why}")]
    Apply {
        /// `PostgresUser/alice`.
        object: String,
        /// The server's message.
        why: String,
    },
    /// A request to the API server failed.
    #[error("cannot read the objects in the sandbox: {}", chain(.0))]
    Look(#[from] Box<kube::Error>),
    /// The operator failed.
    #[error("the operator ended: {0}")]
    Operator(#[from] RunError),
    /// The arguments of the operator are invalid.
    #[error("the operator cannot be started: {0}")]
    Words(#[from] clap::Error),
    /// With `--once`: not everything was ready in time.
    #[error("not ready within {seconds} seconds: {reasons}")]
    NotReady {
        /// The timeout.
        seconds: u64,
        /// Each object that is not ready, with the reason.
        reasons: String,
    },
    /// Another error of the system.
    #[error("cannot start: {0}")]
    System(#[from] io::Error),
    /// Logging could not be started.
    #[error(transparent)]
    Logs(#[from] LogsError),
    /// Standard output failed.
    #[error(transparent)]
    Output(#[from] OutputError),
}

impl From<kube::Error> for SandboxError {
    fn from(error: kube::Error) -> Self {
        Self::Look(Box::new(error))
    }
}
