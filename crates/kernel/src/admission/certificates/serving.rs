//! The certificate that is presented in TLS handshakes, replaceable while connections are open.

use std::{fmt, sync::Arc};

use parking_lot::RwLock;
use rustls::{
    ServerConfig,
    crypto::aws_lc_rs::default_provider,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use secrecy::{ExposeSecret, SecretString};

pub(in crate::admission) struct Serving(RwLock<Arc<CertifiedKey>>);

impl Serving {
    pub(in crate::admission) fn new(key: Arc<CertifiedKey>) -> Self {
        Self(RwLock::new(key))
    }

    /// Used from the next handshake on.
    pub(in crate::admission) fn install(&self, key: Arc<CertifiedKey>) {
        *self.0.write() = key;
    }

    /// A TLS server that presents the installed certificate.
    pub(in crate::admission) fn server_config(self: Arc<Self>) -> Result<ServerConfig, rustls::Error> {
        let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(self);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

impl ResolvesServerCert for Serving {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.read().clone())
    }
}

impl fmt::Debug for Serving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Serving").finish_non_exhaustive()
    }
}

/// Parses a certificate chain and its key, and checks that they match.
pub(super) fn certified_key(chain: &str, key: &SecretString) -> Result<Arc<CertifiedKey>, String> {
    let chain = CertificateDer::pem_slice_iter(chain.as_bytes())
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| format!("the certificate is not valid PEM: {error}"))?;
    if chain.is_empty() {
        return Err("there is no certificate in it".into());
    }
    let key = PrivateKeyDer::from_pem_slice(key.expose_secret().as_bytes())
        .map_err(|error| format!("the key is not valid PEM: {error}"))?;
    CertifiedKey::from_der(chain, key, &default_provider())
        .map(Arc::new)
        .map_err(|error| error.to_string())
}
