//! Calls a webhook over HTTPS. Trusts only the CA in the webhook's configuration.

use std::sync::Arc;
use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::rules::Webhook;
use crate::store::text;

/// The client for webhooks. Services are not routed in the sandbox, so webhooks need a URL.
#[derive(Debug, Default)]
pub(crate) struct Webhooks;

impl Webhooks {
    /// Posts a review and returns the `response` in the answer.
    pub(crate) async fn post(&self, webhook: &Webhook, review: &Value) -> Result<Value, String> {
        let answer = self.call(webhook, review).await;
        let answer = answer.map_err(|why| format!("failed to call webhook: {why}"))?;
        let asked = text(review, "/request/uid");
        match answer.get("response") {
            Some(response) if text(response, "/uid") == asked => Ok(response.clone()),
            Some(response) => Err(format!(
                "received invalid webhook response: expected response.uid=\"{asked}\", got \"{}\"",
                text(response, "/uid")
            )),
            None => Err("received invalid webhook response: webhook response was absent".to_owned()),
        }
    }

    async fn call(&self, webhook: &Webhook, review: &Value) -> Result<Value, String> {
        let url = text(&webhook.client, "/url");
        if url.is_empty() {
            let (name, namespace) = (
                text(&webhook.client, "/service/name"),
                text(&webhook.client, "/service/namespace"),
            );
            return Err(format!(
                "service \"{name}\" in namespace \"{namespace}\" cannot be reached from the sandbox; use a URL"
            ));
        }
        let fail = |why: String| format!("Post \"{url}?timeout={}s\": {why}", webhook.seconds);
        let (status, body) = tokio::time::timeout(
            Duration::from_secs(webhook.seconds),
            exchange(webhook, url, review),
        )
        .await
        .map_err(|_| fail("context deadline exceeded".to_owned()))?
        .map_err(fail)?;
        if !status.is_success() {
            let said = String::from_utf8_lossy(&body);
            return Err(format!(
                "an error on the server (\"{said}\") has prevented the request from succeeding"
            ));
        }
        serde_json::from_slice(&body).map_err(|error| error.to_string())
    }
}

async fn exchange(webhook: &Webhook, url: &str, review: &Value) -> Result<(StatusCode, Bytes), String> {
    let uri: Uri = url
        .parse()
        .map_err(|error: http::uri::InvalidUri| error.to_string())?;
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let stream = TcpStream::connect((host.as_str(), uri.port_u16().unwrap_or(443)))
        .await
        .map_err(|error| format!("dial tcp: {error}"))?;
    let server_name = ServerName::try_from(host.clone()).map_err(|error| error.to_string())?;
    let stream = TlsConnector::from(Arc::new(trust(&webhook.client)?))
        .connect(server_name, stream)
        .await
        .map_err(|error| format!("tls: {error}"))?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| error.to_string())?;
    let connection = tokio::spawn(connection);
    let path = uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    let request = Request::post(path)
        .header("host", host)
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(review.to_string())))
        .map_err(|error| error.to_string())?;
    let answer = sender
        .send_request(request)
        .await
        .map_err(|error| error.to_string())?;
    let status = answer.status();
    let body = answer
        .into_body()
        .collect()
        .await
        .map_err(|error| error.to_string())?
        .to_bytes();
    connection.abort();
    Ok((status, body))
}

fn trust(client: &Value) -> Result<ClientConfig, String> {
    let bundle = STANDARD
        .decode(text(client, "/caBundle"))
        .map_err(|error| error.to_string())?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&bundle) {
        roots
            .add(certificate.map_err(|error| error.to_string())?)
            .map_err(|error| error.to_string())?;
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth())
}
