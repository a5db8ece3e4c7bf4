//! A mounted certificate, for example from cert-manager.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use secrecy::SecretString;

use super::{CertificateError, Material, serving::certified_key};

/// A folder with `tls.crt`, `tls.key` and, if the operator has to set the CA bundle of the webhooks, `ca.crt`.
#[derive(Clone, Debug)]
pub struct Mounted {
    /// The folder.
    pub folder: PathBuf,
    /// How often the folder is read again.
    pub check_every: Duration,
}

impl Mounted {
    /// Read again every ten seconds. Reading three small files is simpler than watching a mounted Secret correctly: the
    /// kubelet swaps a symlink above them.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            check_every: Duration::from_secs(10),
        }
    }
}

/// If the files change while they are read, the key does not match the certificate, which is an error here; the caller
/// keeps the old certificate and retries.
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
