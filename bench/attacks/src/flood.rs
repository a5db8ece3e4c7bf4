//! A client without a credential that sends large bodies to the webhooks.

use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_rustls::TlsConnector;

const CONNECTIONS: usize = 64;
const BODY: usize = 8 << 20;
const CHUNK: usize = 8192;

/// Keeps this many connections busy with bodies until the tasks end.
pub(crate) fn start(address: &str) -> Vec<JoinHandle<()>> {
    let flood = |_| {
        let address = address.to_owned();
        tokio::spawn(async move {
            loop {
                drop(body(&address).await);
                sleep(Duration::from_millis(10)).await;
            }
        })
    };
    (0..CONNECTIONS).map(flood).collect()
}

async fn body(address: &str) -> std::io::Result<()> {
    let config = ClientConfig::builder()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody))
        .with_no_client_auth();
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("localhost").expect("a name");
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    let head = format!(
        "POST /validate-postgrespolicy HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {BODY}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    for _ in 0..BODY / CHUNK {
        stream.write_all(&[b' '; CHUNK]).await?;
    }
    stream.flush().await
}

/// The attacker does not care about the certificate.
#[derive(Debug)]
struct Anybody;

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![
            SignatureScheme::ECDSA_NISTP256_SHA256,
            SignatureScheme::ECDSA_NISTP384_SHA384,
            SignatureScheme::ED25519,
            SignatureScheme::RSA_PSS_SHA256,
            SignatureScheme::RSA_PKCS1_SHA256,
        ]
    }
}
