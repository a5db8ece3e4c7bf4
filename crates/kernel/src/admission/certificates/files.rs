//! A certificate that somebody else makes and mounts.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use secrecy::SecretString;

use super::{CertificateError, Material, serving::certified_key};

/// A folder with `tls.crt`, `tls.key` and, if the API server is to be told whom to trust, `ca.crt`.
#[derive(Clone, Debug)]
pub struct Mounted {
    /// The folder.
    pub folder: PathBuf,
    /// How often it is read again.
    pub check_every: Duration,
}

impl Mounted {
    /// Read again every ten seconds. Reading three small files is cheaper than getting notifications
    /// of a mounted Secret right: the kubelet swaps a symlink above them.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            check_every: Duration::from_secs(10),
        }
    }
}

/// A swap in the middle of reading gives a key that does not match, which is an error here; the
/// caller keeps what it has and comes again.
pub(super) async fn load(folder: &Path) -> Result<Material, CertificateError> {
    let chain = read(folder.join("tls.crt")).await?;
    let key = SecretString::from(read(folder.join("tls.key")).await?);
    let key = certified_key(&chain, &key).map_err(|reason| CertificateError::Unusable {
        place: folder.display().to_string(),
        reason,
    })?;
    let ca_bundle = match read(folder.join("ca.crt")).await {
        Ok(bundle) => Some(bundle),
        Err(CertificateError::File { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    Ok(Material { key, ca_bundle })
}

async fn read(path: PathBuf) -> Result<String, CertificateError> {
    tokio::fs::read_to_string(&path)
        .await
        .map_err(|source| CertificateError::File { path, source })
}
