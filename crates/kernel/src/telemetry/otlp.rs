//! Traces to an OpenTelemetry collector: OTLP over HTTP, protobuf.
//!
//! Built only with the feature `otlp`. It speaks through the HTTP and TLS stack that the Kubernetes client brings
//! anyway (hyper, rustls, aws-lc), so the feature adds the protocol's types and no second HTTP client.
//!
//! Spans leave in batches from a thread of the library's own. A collector that is slow or away costs nothing but the
//! spans, and is logged once when it goes and once when it is back.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use opentelemetry::{KeyValue, trace::TracerProvider as _};
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::{Resource, trace::SdkTracerProvider};
use thiserror::Error;
use tokio::runtime::Handle;
use tracing::{info, level_filters::LevelFilter, warn};
use tracing_subscriber::{Layer as _, filter::Targets};

use super::logs::ExtraLayer;

/// How long a collector may take for one batch, and the last batch for the end of the process.
const TIMEOUT: Duration = Duration::from_secs(5);
/// A collector answers with next to nothing.
const LARGEST_ANSWER: usize = 64 * 1024;

/// Why there are no traces.
#[derive(Debug, Error)]
pub enum OtlpError {
    /// The address is not one.
    #[error("\"{endpoint}\" is not the address of a collector; write it like http://collector:4318")]
    Endpoint {
        /// As it was given.
        endpoint: String,
    },
    /// The system's certificates cannot be read.
    #[error("cannot read the system's certificates for the collector: {0}")]
    Certificates(#[source] std::io::Error),
    /// The library refuses its settings, which may come from `OTEL_` variables.
    #[error("cannot set up the export of traces: {0}; check the OTEL_ variables")]
    Exporter(#[from] ExporterBuildError),
}

/// Sends what is left when the process ends.
#[derive(Debug)]
pub struct Traces {
    provider: SdkTracerProvider,
}

impl Traces {
    /// Sends the spans that wait, for a few seconds at most.
    pub async fn shutdown(self) {
        // It blocks until the last batch is sent, and that batch is sent on this runtime.
        let sent = tokio::task::spawn_blocking(move || self.provider.shutdown_with_timeout(TIMEOUT)).await;
        if let Ok(Err(error)) = sent {
            warn!(%error, "the last traces were not sent");
        }
    }
}

/// The layer that turns spans into traces, and the handle that sends the last of them. To be called on a Tokio
/// runtime, on which the requests will run.
///
/// Sampling, headers and resource attributes come from the usual `OTEL_` variables.
pub fn layer(endpoint: &str, version: &'static str) -> Result<(ExtraLayer, Traces), OtlpError> {
    let exporter = SpanExporter::builder()
        .with_http()
        .with_endpoint(traces_url(endpoint)?.to_string())
        .with_http_client(Collector::new()?)
        .build()?;
    let resource = Resource::builder()
        .with_service_name("stanchion")
        .with_attribute(KeyValue::new("service.version", version))
        .build();
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_resource(resource)
        .build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("stanchion"));
    // Our own spans, and the client's requests as their children; not the spans of sending spans.
    let ours = Targets::new()
        .with_default(LevelFilter::INFO)
        .with_target("kube_client::client::builder", LevelFilter::DEBUG)
        .with_targets(
            ["h2", "hyper", "hyper_util", "opentelemetry", "rustls", "tower"]
                .map(|name| (name, LevelFilter::OFF)),
        );
    Ok((layer.with_filter(ours).boxed(), Traces { provider }))
}

/// As the protocol has it: an address without a path means the usual path.
fn traces_url(endpoint: &str) -> Result<Uri, OtlpError> {
    let wrong = || OtlpError::Endpoint {
        endpoint: endpoint.to_owned(),
    };
    let uri: Uri = endpoint.parse().map_err(|_| wrong())?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none() {
        return Err(wrong());
    }
    match uri.path() {
        "" | "/" => format!("{}/v1/traces", endpoint.trim_end_matches('/'))
            .parse()
            .map_err(|_| wrong()),
        _ => Ok(uri),
    }
}

type Inner = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// The collector, seen from a thread that is not the runtime's.
#[derive(Clone)]
struct Collector {
    client: Inner,
    runtime: Handle,
    away: Arc<AtomicBool>,
}

impl Collector {
    fn new() -> Result<Self, OtlpError> {
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        let connector = HttpsConnectorBuilder::new()
            .with_provider_and_native_roots(provider)
            .map_err(OtlpError::Certificates)?
            .https_or_http()
            .enable_http1()
            .build();
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self {
            client,
            runtime: Handle::current(),
            away: Arc::default(),
        })
    }

    fn is_away(&self, away: bool, why: &dyn fmt::Display) {
        match (self.away.swap(away, Ordering::Relaxed), away) {
            (false, true) => warn!("traces are lost: the collector does not take them: {why}"),
            (true, false) => info!("the collector takes traces again"),
            _ => {}
        }
    }
}

impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collector").finish_non_exhaustive()
    }
}

impl HttpClient for Collector {
    fn send_bytes<'a, 'b>(
        &'a self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        let client = self.client.clone();
        let exchange = async move {
            let response = client.request(request.map(Full::new)).await?;
            let (parts, body) = response.into_parts();
            let body = Limited::new(body, LARGEST_ANSWER).collect().await?.to_bytes();
            Ok(Response::from_parts(parts, body))
        };
        // A timer, like a connection, can only be made on the runtime.
        let exchange = self
            .runtime
            .spawn(async { tokio::time::timeout(TIMEOUT, exchange).await });
        Box::pin(async move {
            let result: Result<Response<Bytes>, HttpError> = match exchange.await {
                Ok(Ok(result)) => result,
                Ok(Err(late)) => Err(late.into()),
                Err(aborted) => Err(aborted.into()),
            };
            match &result {
                Ok(response) if response.status().is_success() => self.is_away(false, &""),
                Ok(response) => self.is_away(true, &response.status()),
                Err(error) => self.is_away(true, error),
            }
            result
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use tokio::net::TcpListener;

    use super::*;

    /// Sends as the library does: from a thread that knows nothing of the runtime.
    async fn send(collector: &Collector, addr: SocketAddr) -> Result<Response<Bytes>, HttpError> {
        let collector = collector.clone();
        let request = Request::post(format!("http://{addr}/v1/traces"))
            .body(Bytes::new())
            .unwrap();
        let thread = std::thread::spawn(move || futures::executor::block_on(collector.send_bytes(request)));
        tokio::task::spawn_blocking(|| thread.join().unwrap())
            .await
            .unwrap()
    }

    #[tokio::test]
    async fn a_collector_that_goes_and_comes_back_is_noticed() {
        let collector = Collector::new().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        drop(listener);
        assert!(send(&collector, addr).await.is_err());
        assert!(collector.away.load(Ordering::Relaxed));

        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let routes = axum::Router::new().fallback(|| async { "" });
        let serving = tokio::spawn(async move { axum::serve(listener, routes).await });
        assert!(send(&collector, addr).await.unwrap().status().is_success());
        assert!(!collector.away.load(Ordering::Relaxed));
        serving.abort();
    }

    #[test]
    fn an_address_without_a_path_means_the_usual_path() {
        let url = |endpoint| traces_url(endpoint).map(|url| url.to_string());
        assert_eq!(
            url("http://collector:4318").unwrap(),
            "http://collector:4318/v1/traces"
        );
        assert_eq!(
            url("http://collector:4318/").unwrap(),
            "http://collector:4318/v1/traces"
        );
        assert_eq!(
            url("https://example.com/otlp/v1/traces").unwrap(),
            "https://example.com/otlp/v1/traces"
        );
    }

    #[test]
    fn what_is_no_address_is_refused_with_an_example() {
        for endpoint in ["", "collector:4318", "grpc://collector:4317", "not an address"] {
            let error = traces_url(endpoint).unwrap_err().to_string();
            assert!(error.contains("http://collector:4318"), "{endpoint}: {error}");
        }
    }
}
