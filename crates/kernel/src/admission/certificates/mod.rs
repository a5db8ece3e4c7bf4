//! The server's certificate: made by the operator itself, or mounted by something like cert-manager.
//!
//! Either way it is read again from time to time and used from the next TLS handshake on, so that
//! a rotation needs no restart.

mod files;
mod pair;
mod rotation;
mod secret;
mod serving;

use std::{path::PathBuf, sync::Arc, time::Duration};

use kube::Client;
use rustls::sign::CertifiedKey;

pub use files::Mounted;
pub use secret::SelfMade;
pub(super) use serving::Serving;

use secret::SecretStore;

/// Where the certificate comes from.
#[derive(Clone, Debug)]
pub enum CertificateSource {
    /// The operator makes it, keeps it in a Secret that all replicas share, and rotates it.
    SelfMade(SelfMade),
    /// Something else makes it and mounts it, cert-manager for example.
    Mounted(Mounted),
}

/// Why there is no usable certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A mounted file cannot be read.
    #[error("cannot read {}: {source}; mount the certificate's Secret there", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// There is something, but it is no certificate with its key.
    #[error("the certificate in {place} cannot be used: {reason}")]
    Unusable {
        /// A folder, or a Secret.
        place: String,
        /// What is wrong with it. Never a part of the key.
        reason: String,
    },
    /// The Secret's name is taken.
    #[error(
        "Secret {secret} exists and was not made by this operator; delete it, or choose another name \
         for the webhooks' certificate"
    )]
    Foreign {
        /// Namespace and name.
        secret: String,
    },
    /// Other replicas keep changing the Secret while we want to.
    #[error("Secret {secret} kept changing while the webhooks' certificate was written")]
    Contended {
        /// Namespace and name.
        secret: String,
    },
    /// The API server says no.
    #[error("cannot read or write Secret {secret}: {source}")]
    Api {
        /// Namespace and name.
        secret: String,
        /// Its answer.
        source: Box<kube::Error>,
    },
    /// The crypto library says no.
    #[error("cannot make a certificate: {0}")]
    Make(#[from] rcgen::Error),
}

/// What to serve with, and what the API server must trust for it.
pub(super) struct Material {
    pub(super) key: Arc<CertifiedKey>,
    pub(super) ca_bundle: Option<String>,
}

/// Reads (and for [`SelfMade`] also makes and rotates) the certificate.
pub(super) enum Loader {
    Secret(Box<SecretStore>),
    Files(Mounted),
}

impl Loader {
    pub(super) fn new(client: Client, source: CertificateSource) -> Self {
        match source {
            CertificateSource::SelfMade(settings) => {
                Self::Secret(Box::new(SecretStore::new(client, settings)))
            }
            CertificateSource::Mounted(settings) => Self::Files(settings),
        }
    }

    pub(super) async fn load(&self) -> Result<Material, CertificateError> {
        match self {
            Self::Secret(store) => store.load().await,
            Self::Files(settings) => files::load(&settings.folder).await,
        }
    }

    /// How long to wait before looking again.
    pub(super) fn check_every(&self) -> Duration {
        match self {
            Self::Secret(store) => store.check_every(),
            Self::Files(settings) => settings.check_every,
        }
    }
}
