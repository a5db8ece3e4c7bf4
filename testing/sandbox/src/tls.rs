//! The TLS listener on loopback, with its own CA and a kubeconfig, for kubectl, Helm and the real binary. HTTP/1.1 and
//! HTTP/2.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::service::InProcessService;

/// Why the TLS listener did not start.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The address is in use or not available.
    #[error("cannot listen on {0}: {1}; choose another port or 0 for any")]
    Listen(SocketAddr, #[source] io::Error),
    /// The certificates could not be created.
    #[error("cannot make the certificates of the API server: {0}")]
    Certificate(#[from] rcgen::Error),
    /// The certificates could not be used.
    #[error("cannot use the certificates of the API server: {0}")]
    Tls(#[from] rustls::Error),
}

/// A listening server.
#[derive(Debug)]
pub(crate) struct Listening {
    pub(crate) address: SocketAddr,
    pub(crate) authority: String,
    pub(crate) task: tokio::task::JoinHandle<()>,
}

struct Certificates {
    authority: String,
    config: ServerConfig,
}

fn certificates() -> Result<Certificates, TlsError> {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    authority
        .distinguished_name
        .push(DnType::CommonName, "sandbox-ca");
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;
    let names = ["127.0.0.1", "localhost", "kubernetes", "kubernetes.default.svc"].map(str::to_owned);
    let mut server = CertificateParams::new(names)?;
    server.distinguished_name.push(DnType::CommonName, "sandbox");
    let key = KeyPair::generate()?;
    let certificate = server.signed_by(&key, &authority)?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der())),
        )?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Certificates {
        authority: authority.pem(),
        config,
    })
}

/// Starts the listener and serves until the task is aborted.
pub(crate) async fn listen(door: InProcessService, address: SocketAddr) -> Result<Listening, TlsError> {
    let Certificates { authority, config } = certificates()?;
    let listener = TcpListener::bind(address)
        .await
        .map_err(|error| TlsError::Listen(address, error))?;
    let address = listener
        .local_addr()
        .map_err(|error| TlsError::Listen(address, error))?;
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let task = tokio::spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = listener.accept() => {
                    let Ok((stream, _)) = accepted else { continue };
                    let (acceptor, door) = (acceptor.clone(), door.clone());
                    connections.spawn(async move {
                        // Disables Nagle's algorithm: small responses must not wait.
                        let _ = stream.set_nodelay(true);
                        let Ok(stream) = acceptor.accept(stream).await else { return };
                        let service = TowerToHyperService::new(door);
                        let builder = auto::Builder::new(TokioExecutor::new());
                        if let Err(error) = builder.serve_connection_with_upgrades(TokioIo::new(stream), service).await {
                            tracing::debug!(error, "connection ended");
                        }
                    });
                }
                Some(_) = connections.join_next() => {}
            }
        }
    });
    Ok(Listening {
        address,
        authority,
        task,
    })
}

/// A kubeconfig for a user of this server. It is JSON, which is valid YAML.
pub(crate) fn kubeconfig(address: SocketAddr, authority: &str, token: &str) -> String {
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "sandbox",
        "clusters": [{"name": "sandbox", "cluster": {
            "server": format!("https://{address}"), "certificate-authority-data": STANDARD.encode(authority),
        }}],
        "users": [{"name": "sandbox", "user": {"token": token}}],
        "contexts": [{"name": "sandbox", "context": {"cluster": "sandbox", "user": "sandbox"}}],
    });
    format!("{config:#}\n")
}
