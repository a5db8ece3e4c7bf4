//! The HTTP client for the OpenTelemetry collector.

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
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use opentelemetry_http::{HttpClient, HttpError};
use tokio::runtime::Handle;
use tracing::{info, warn};

use super::OtlpError;

/// Timeout of one message, and of the last message at the end of the process.
pub(super) const TIMEOUT: Duration = Duration::from_secs(5);
/// A collector's answers are tiny.
const LARGEST_ANSWER: usize = 64 * 1024;

type Inner = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// The client for one signal; it may be used from a thread outside of the runtime.
#[derive(Clone)]
pub(super) struct Collector {
    signal: &'static str,
    client: Inner,
    runtime: Handle,
    away: Arc<AtomicBool>,
}

impl Collector {
    /// To be called on the runtime of the requests.
    pub(super) fn new(signal: &'static str) -> Result<Self, OtlpError> {
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        let connector = HttpsConnectorBuilder::new()
            .with_provider_and_native_roots(provider)
            .map_err(OtlpError::Certificates)?
            .https_or_http()
            .enable_http1()
            .build();
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self {
            signal,
            client,
            runtime: Handle::current(),
            away: Arc::default(),
        })
    }

    fn is_away(&self, away: bool, why: &dyn fmt::Display) {
        let signal = self.signal;
        match (self.away.swap(away, Ordering::Relaxed), away) {
            (false, true) => warn!("{signal} are lost: the collector does not take them: {why}"),
            (true, false) => info!("the collector takes {signal} again"),
            _ => {}
        }
    }
}

impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collector")
            .field("signal", &self.signal)
            .finish_non_exhaustive()
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
        // Timers and connections must be created on the runtime.
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

    /// Sends as the library does: from a thread outside of the runtime.
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
        let collector = Collector::new("traces").unwrap();
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
}
