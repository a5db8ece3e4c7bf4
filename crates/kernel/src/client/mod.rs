//! Builds the operator's Kubernetes client.
//!
//! kube's own stack has no timeout for requests, and it retries failed requests up to 15 times over minutes, including
//! creates and patches. This client has these layers, from the caller to the wire:
//!
//! | layer | why |
//! |---|---|
//! | `streamed` | a streamed list is as new as its request |
//! | [`deadline`] | no request, and no response body, can block a reconcile forever |
//! | [`retry`] | retries reads a few times while the API server is overloaded |
//! | [`ApiCallsLayer`] | each attempt is counted |
//! | [`Options::layers`] | closest to the wire: must stop a write at the last moment (the lease's fence), or must look
//! like a failure of the server (a test's faults) |
//! | kube's own | credentials, headers, TLS (rustls with aws-lc) |

pub mod deadline;
pub mod retry;
mod streamed;

use std::time::Duration;

use http::{HeaderValue, Request, Response, header::USER_AGENT};
use kube::{
    Client, Config,
    client::{Body, ClientBuilder, DynBody},
};
use thiserror::Error;
use tower::{
    BoxError, Layer, Service, ServiceBuilder,
    buffer::BufferLayer,
    retry::RetryLayer,
    util::{BoxLayer, BoxService},
};

use crate::telemetry::{Metrics, api_calls::ApiCallsLayer};
use deadline::DeadlineLayer;
use retry::RetryReads;

/// A response of the API server; its body is not read yet.
pub type ApiResponse = Response<Box<DynBody>>;

/// The service that each of [`Options::layers`] wraps, and becomes.
pub type ApiService = BoxService<Request<Body>, ApiResponse, BoxError>;

/// A layer of the caller. Created from any tower layer with `ApiLayer::new(layer)`.
pub type ApiLayer = BoxLayer<ApiService, Request<Body>, ApiResponse, BoxError>;

/// Timeout of a request, including retries and body. The API server's own limit is 60 s.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// Timeout of the TCP and TLS handshakes.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum number of requests that wait for the connection pool. It never makes them wait; the limit guards memory.
const QUEUE: usize = 1024;

/// Options of a client.
#[derive(Clone)]
pub struct Options {
    /// The component: appears as `stanchion/VERSION (component)` in the audit log.
    pub component: String,
    /// The timeout of each request that is not a stream.
    pub deadline: Duration,
    /// The caller's own layers, the first one nearest to the caller.
    pub layers: Vec<ApiLayer>,
}

impl Options {
    /// The defaults for this component.
    pub fn new(component: impl Into<String>) -> Self {
        Self {
            component: component.into(),
            deadline: DEADLINE,
            layers: Vec::new(),
        }
    }

    /// Adds a layer inside the existing ones.
    #[must_use]
    pub fn with_layer<L>(mut self, layer: L) -> Self
    where
        L: Layer<ApiService> + Send + Sync + 'static,
        L::Service: Service<Request<Body>, Response = ApiResponse, Error = BoxError> + Send + 'static,
        <L::Service as Service<Request<Body>>>::Future: Send + 'static,
    {
        self.layers.push(ApiLayer::new(layer));
        self
    }
}

/// Why the client could not be built.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The configuration (kubeconfig, or the pod's service account) is not usable.
    #[error("cannot make a client for {url}: {source}; check the kubeconfig or the service account")]
    Config {
        /// The cluster's address.
        url: Box<http::Uri>,
        /// The cause.
        source: Box<kube::Error>,
    },
    /// The component's name contains characters that are not valid in a header.
    #[error("\"{0}\" cannot be part of a user agent; use letters, digits, commas and dashes")]
    Component(String),
}

/// Builds the client for this configuration.
pub fn build(mut config: Config, metrics: &Metrics, options: &Options) -> Result<Client, ClientError> {
    let agent = format!("stanchion/{} ({})", env!("CARGO_PKG_VERSION"), options.component);
    let agent =
        HeaderValue::from_str(&agent).map_err(|_| ClientError::Component(options.component.clone()))?;
    config.headers.push((USER_AGENT, agent));
    config.default_retry = false;
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    let url = config.cluster_url.clone();
    let builder = ClientBuilder::try_from(config).map_err(|source| ClientError::Config {
        url: Box::new(url),
        source: Box::new(source),
    })?;
    let layer = tower::layer::layer_fn(|service| stack(service, metrics, options));
    Ok(builder.with_layer(&layer).build())
}

/// The same client over an existing service: a server in this process, or a test's.
pub fn over(service: ApiService, namespace: &str, metrics: &Metrics, options: &Options) -> Client {
    Client::new(stack(service, metrics, options), namespace)
}

fn stack(
    service: ApiService,
    metrics: &Metrics,
    options: &Options,
) -> impl Service<Request<Body>, Response = Response<deadline::Bounded>, Error = BoxError, Future: Send>
+ Send
+ use<> {
    let service = options
        .layers
        .iter()
        .rev()
        .fold(service, |inner, layer| layer.layer(inner));
    ServiceBuilder::new()
        .map_request(streamed::consistent)
        .layer(DeadlineLayer::new(options.deadline))
        .layer(RetryLayer::new(RetryReads::default()))
        // A retry needs a service that can be cloned, and kube's cannot.
        .layer(BufferLayer::new(QUEUE))
        .layer(ApiCallsLayer::new(metrics.api().clone()))
        .service(service)
}
