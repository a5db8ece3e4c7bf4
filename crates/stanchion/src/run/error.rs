//! Errors that end the operator.

use std::io;

use kube::config::InferConfigError;
use stanchion_kernel::admission::AdmissionError;
use stanchion_kernel::client::ClientError;
use stanchion_kernel::redact::InstallKeyError;
use stanchion_kernel::telemetry::health::BindError;
use stanchion_kernel::telemetry::logs::LogsError;
use thiserror::Error;

use super::instance::InstanceError;
use super::preflight::PreflightError;
use crate::cli::Failure;

/// Why the operator ended.
#[derive(Debug, Error)]
pub(crate) enum RunError {
    #[error(transparent)]
    Instance(#[from] InstanceError),
    #[error(transparent)]
    Logs(#[from] LogsError),
    #[cfg(feature = "otlp")]
    #[error(transparent)]
    Otlp(#[from] stanchion_kernel::telemetry::otlp::OtlpError),
    #[error("no cluster is configured: set KUBECONFIG, or run inside of a cluster ({0})")]
    NoCluster(Box<InferConfigError>),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Preflight(#[from] PreflightError),
    #[error(transparent)]
    Bind(#[from] BindError),
    #[error(transparent)]
    Admission(#[from] AdmissionError),
    #[error(transparent)]
    Fingerprints(#[from] InstallKeyError),
    #[error("cannot start: {0}")]
    System(#[from] io::Error),
    #[error("this replica lost the leader lease; restart it to take part in the election again")]
    LeaseLost,
    #[error("the controllers ended by themselves, which is a defect; start again")]
    Ended,
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Instance(_) | RunError::Logs(_) => Self::usage(error),
            #[cfg(feature = "otlp")]
            RunError::Otlp(_) => Self::usage(error),
            _ => Self::of(error),
        }
    }
}
