//! The default server of `PostgresUser`, from a URL or from a file that contains one.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use secrecy::SecretString;
use stanchion_postgres::{ConnectionConfig, ConnectionConfigError};
use stanchion_user::DefaultInstance;
use thiserror::Error;
use tracing::{info, warn};

use super::arguments::InstanceArguments;

/// How often the file is read again. The kubelet takes up to a minute to update a mounted one.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// Why there is no default server. No error repeats the URL.
#[derive(Debug, Error)]
pub(crate) enum InstanceError {
    /// The URL in the arguments or the environment is invalid.
    #[error("--postgres-url cannot be used: {0}")]
    Url(ConnectionConfigError),
    /// The URL in the file is invalid.
    #[error("the URL in {} cannot be used: {source}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// The problem.
        source: ConnectionConfigError,
    },
    /// The file cannot be read.
    #[error("cannot read --postgres-url-file {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

/// The configured server, if there is one.
pub(super) fn read(arguments: &InstanceArguments) -> Result<Option<ConnectionConfig>, InstanceError> {
    if let Some(url) = &arguments.postgres_url {
        let target = ConnectionConfig::parse(url).map_err(InstanceError::Url)?;
        return Ok(Some(target.named_by_administrator()));
    }
    arguments.postgres_url_file.as_deref().map(read_file).transpose()
}

fn read_file(path: &Path) -> Result<ConnectionConfig, InstanceError> {
    let text = std::fs::read_to_string(path).map_err(|source| InstanceError::File {
        path: path.to_owned(),
        source,
    })?;
    ConnectionConfig::parse(&SecretString::from(text))
        .map(ConnectionConfig::named_by_administrator)
        .map_err(|source| InstanceError::Content {
            path: path.to_owned(),
            source,
        })
}

/// Replaces the server whenever the file changes: a rotated password needs no restart.
pub(super) async fn follow(path: PathBuf, instance: DefaultInstance) {
    let mut complained = false;
    loop {
        tokio::time::sleep(LOOK_AGAIN).await;
        match read_file(&path) {
            Ok(target) => {
                complained = false;
                let known = instance.get().map(|known| known.fingerprint());
                if known != Some(target.fingerprint()) {
                    info!(server = %target, "the default instance has changed");
                    instance.set(Some(target));
                }
            }
            // The previous URL may still work.
            Err(error) if !complained => {
                complained = true;
                warn!(%error, "the default instance stays as it is");
            }
            Err(_) => {}
        }
    }
}
