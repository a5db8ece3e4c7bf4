//! A TLS client that shows which certificate the server presents.

use std::{net::SocketAddr, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::aws_lc_rs::default_provider,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

/// Connects as the API server does, trusting `bundle` only.
pub(super) async fn connect(addr: SocketAddr, bundle: &str) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
        roots.add(authority.unwrap()).unwrap();
    }
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::from(addr.ip());
    TlsConnector::from(Arc::new(config))
        .connect(name, TcpStream::connect(addr).await?)
        .await
}

/// The certificate that a server presents, or why it is not trusted.
pub(super) async fn presented(addr: SocketAddr, bundle: &str) -> std::io::Result<CertificateDer<'static>> {
    let stream = connect(addr, bundle).await?;
    let (_, session) = stream.get_ref();
    Ok(session.peer_certificates().unwrap()[0].clone().into_owned())
}
