//! The server's certificate: created by the operator itself, or mounted, for example by cert-manager.
//!
//! In both cases the operator reads it again periodically and uses it from the next TLS handshake on, so a rotation
//! needs no restart.

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
    /// The operator creates it, keeps it in a Secret that all replicas share, and rotates it.
    SelfMade(SelfMade),
    /// Another component creates and mounts it, cert-manager for example.
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
        /// The error of the system.
        source: std::io::Error,
    },
    /// The files or the Secret do not contain a certificate with its key.
    #[error("the certificate in {place} cannot be used: {reason}")]
    Unusable {
        /// A folder, or a Secret.
        place: String,
        /// The problem. Never contains a part of the key.
        reason: String,
    },
    /// A Secret with this name exists and belongs to another owner.
    #[error(
        "Secret {secret} exists and was not created by this operator; delete it, or choose another name \
         for the webhooks' certificate"
    )]
    Foreign {
        /// Namespace and name.
        secret: String,
    },
    /// Other replicas keep changing the Secret at the same time.
    #[error("Secret {secret} kept changing while the webhooks' certificate was written")]
    Contended {
        /// Namespace and name.
        secret: String,
    },
    /// The API server refused the request.
    #[error("cannot read or write Secret {secret}: {source}")]
    Api {
        /// Namespace and name.
        secret: String,
        /// Its answer.
        source: Box<kube::Error>,
    },
    /// The crypto library returned an error.
    #[error("cannot make a certificate: {0}")]
    Make(#[from] rcgen::Error),
}

/// The certificate to serve, and the CA bundle that the API server needs.
pub(super) struct Material {
    pub(super) key: Arc<CertifiedKey>,
    pub(super) ca_bundle: Option<String>,
}

/// Reads (and for [`SelfMade`] also creates and rotates) the certificate.
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

    /// The interval between two reads.
    pub(super) fn check_every(&self) -> Duration {
        match self {
            Self::Secret(store) => store.check_every(),
            Self::Files(settings) => settings.check_every,
        }
    }
}
