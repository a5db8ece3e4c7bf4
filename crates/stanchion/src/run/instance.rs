//! The default instance of `PostgresUser`, from a URL or from a file that holds one.

use std::io;
use std::path::PathBuf;

use secrecy::SecretString;
use stanchion_postgres::{Target, TargetError};
use thiserror::Error;

use super::arguments::DefaultInstance;

/// Why there is no default instance. Neither error repeats what was read.
#[derive(Debug, Error)]
pub(crate) enum InstanceError {
    /// The URL of the command line or the environment.
    #[error("--postgres-url cannot be used: {0}")]
    Url(TargetError),
    /// The URL in the file.
    #[error("the URL in {} cannot be used: {source}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: TargetError,
    },
    /// The file.
    #[error("cannot read --postgres-url-file {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// The instance that was named, if one was.
pub(super) fn read(flags: &DefaultInstance) -> Result<Option<Target>, InstanceError> {
    if let Some(url) = &flags.postgres_url {
        return Target::parse(url).map(Some).map_err(InstanceError::Url);
    }
    let Some(path) = &flags.postgres_url_file else {
        return Ok(None);
    };
    let text = std::fs::read_to_string(path).map_err(|source| InstanceError::File {
        path: path.clone(),
        source,
    })?;
    Target::parse(&SecretString::from(text))
        .map(Some)
        .map_err(|source| InstanceError::Content {
            path: path.clone(),
            source,
        })
}
