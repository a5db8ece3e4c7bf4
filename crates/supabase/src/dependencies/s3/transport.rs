//! Sends a request and returns the answer, or why there is none.

use std::error::Error as StdError;
use std::io;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use http::uri::Scheme;
use http::{Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use stanchion_kernel::{Class, Problem};
use stanchion_postgres::error::plain_to;
use stanchion_postgres::http::{Connector, ProxyError};
use stanchion_postgres::network::ConnectError;

use crate::dependencies::is_unknown;

/// Largest answer in bytes: enough for any error document.
const MAX_ANSWER: usize = 64 * 1024;
/// Most bytes of a TLS error that are repeated.
const MAX_SHOWN: usize = 256;

/// A client, and what it needs to reach a proxy.
pub(super) struct HttpsClient {
    client: Client<HttpsConnector<Connector>, Empty<Bytes>>,
    connector: Connector,
}

/// The authorities of the machine, read once: there are more than a hundred.
static OF_THE_MACHINE: LazyLock<Arc<RootCertStore>> = LazyLock::new(|| {
    let mut roots = RootCertStore::empty();
    // Some of a machine's certificates are usually unreadable or outdated; ignore them.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    Arc::new(roots)
});

/// A client that trusts the given authorities, in PEM, or else those of the machine.
pub(super) fn client(ca: Option<&str>, uri: &Uri, connector: Connector) -> Result<HttpsClient, Problem> {
    let roots = match ca {
        Some(pem) => Arc::new(given(pem).ok_or_else(bad_ca)?),
        None if uri.scheme() == Some(&Scheme::HTTPS) => OF_THE_MACHINE.clone(),
        None => Arc::new(RootCertStore::empty()),
    };
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| Problem::human("TlsFailed", format!("TLS cannot be set up: {error}")))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let secured = HttpsConnectorBuilder::new()
        .with_tls_config(config)
        .https_or_http()
        .enable_http1()
        .wrap_connector(connector.clone());
    Ok(HttpsClient {
        client: Client::builder(TokioExecutor::new()).build(secured),
        connector,
    })
}

fn given(pem: &str) -> Option<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        roots.add(certificate.ok()?).ok()?;
    }
    (!roots.is_empty()).then_some(roots)
}

fn bad_ca() -> Problem {
    let message = "the CA of the S3 storage is not a certificate in PEM form".to_owned();
    Problem::human("CertificateUntrusted", message)
}

/// The server's answer.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    /// The bucket's region, if the server reports it.
    pub(super) region: Option<String>,
    pub(super) body: String,
}

impl Answer {
    /// Whether it is a bucket listing.
    pub(super) fn is_list(&self) -> bool {
        self.status.is_success() && self.body.contains("<ListBucketResult")
    }

    /// The text of the first element of this name.
    pub(super) fn element(&self, name: &str) -> Option<&str> {
        let (_, rest) = self.body.split_once(&format!("<{name}>"))?;
        rest.split_once("</").map(|(text, _)| text)
    }
}

/// Why there is no answer.
pub(super) struct Failure(Box<dyn StdError + Send + Sync>);

/// Sends the request, and reads the whole answer.
pub(super) async fn get(client: &HttpsClient, uri: &Uri) -> Result<Answer, Failure> {
    let mut request = Request::get(uri.clone());
    if let Some(authorization) = client.connector.authorization(uri) {
        request = request.header(header::PROXY_AUTHORIZATION, authorization);
    }
    let request = request
        .body(Empty::new())
        .map_err(|error| Failure(Box::new(error)))?;
    let answer = client
        .client
        .request(request)
        .await
        .map_err(|error| Failure(Box::new(error)))?;
    let status = answer.status();
    let region = answer.headers().get("x-amz-bucket-region");
    let region = region.and_then(|region| region.to_str().ok()).map(str::to_owned);
    let body = Limited::new(answer.into_body(), MAX_ANSWER).collect().await;
    let body = body.map_err(Failure)?.to_bytes();
    Ok(Answer {
        status,
        region,
        body: String::from_utf8_lossy(&body).into_owned(),
    })
}

impl Failure {
    /// The class, a reason, and what to check.
    pub(super) async fn explain(self, uri: &Uri) -> (Class, &'static str, String) {
        let mut cause: Option<&(dyn StdError + 'static)> = Some(&*self.0);
        while let Some(inner) = cause {
            if let Some(tls) = inner.downcast_ref::<rustls::Error>() {
                return explain_tls(tls);
            }
            if let Some(closed @ ConnectError::Closed) = inner.downcast_ref::<ConnectError>() {
                return (Class::Human, "AddressNotAllowed", closed.to_string());
            }
            if let Some(proxy) = inner.downcast_ref::<ProxyError>() {
                let what = format!("{proxy}; check HTTPS_PROXY, HTTP_PROXY and NO_PROXY of the operator");
                return (Class::Transient, "ProxyFailed", what);
            }
            let io = inner.downcast_ref::<io::Error>();
            if io.is_some_and(|io| io.kind() == io::ErrorKind::ConnectionRefused) {
                return (
                    Class::Transient,
                    "ConnectionRefused",
                    "nothing listens there".to_owned(),
                );
            }
            // An io::Error hides what it wraps from `source`.
            let wrapped = io.and_then(io::Error::get_ref);
            cause = wrapped.map_or_else(|| inner.source(), |wrapped| Some(wrapped));
        }
        let host = uri.host().unwrap_or_default();
        if is_unknown(host).await {
            return (
                Class::Dependency,
                "HostNotFound",
                format!("the host name {host:?} is not in DNS"),
            );
        }
        (Class::Transient, "Unreachable", "the connection broke".to_owned())
    }
}

fn explain_tls(error: &rustls::Error) -> (Class, &'static str, String) {
    use rustls::CertificateError::{NotValidForName, NotValidForNameContext};
    let (reason, what) = match error {
        rustls::Error::InvalidCertificate(NotValidForName | NotValidForNameContext { .. }) => (
            "CertificateName",
            "the server's certificate is for another name".to_owned(),
        ),
        rustls::Error::InvalidCertificate(problem) => (
            "CertificateUntrusted",
            format!(
                "the server's certificate is not trusted ({})",
                plain_to(&problem.to_string(), MAX_SHOWN)
            ),
        ),
        // Usually a server without TLS.
        other => (
            "TlsFailed",
            format!(
                "TLS failed: {}; is it http:// perhaps?",
                plain_to(&other.to_string(), MAX_SHOWN)
            ),
        ),
    };
    (Class::Human, reason, what)
}
