//! The one place where the operator's Kubernetes client is made.
//!
//! What kube's own stack leaves open is closed here: a request there has no deadline, and a failed one is repeated
//! up to 15 times over minutes, creates and patches included. Here, from the caller to the wire:
//!
//! | layer | why |
//! |---|---|
//! | [`deadline`] | no request, and no answer's body, can hold a reconcile for ever |
//! | [`retry`] | a busy API server is asked again, a few times, and only what cannot change anything |
//! | [`ApiCallsLayer`] | each attempt is counted |
//! | [`Options::layers`] | closest to the wire: what must stop a write at the last moment (the lease's fence), or must look like the server's own failure (a test's faults) |
//! | kube's own | credentials, headers, TLS (rustls with aws-lc) |

pub mod deadline;
pub mod retry;

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

/// An answer of the API server, its body not yet read.
pub type ApiResponse = Response<Box<DynBody>>;

/// The service that each of [`Options::layers`] wraps, and becomes.
pub type ApiService = BoxService<Request<Body>, ApiResponse, BoxError>;

/// A layer of a caller's own. Made from any tower layer with `ApiLayer::new(layer)`.
pub type ApiLayer = BoxLayer<ApiService, Request<Body>, ApiResponse, BoxError>;

/// How long the API server has to answer, retries and body included. Its own limit is 60 s.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// How long a TCP and TLS handshake may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Requests that may wait for the connection pool at one time. It never makes them wait; the limit guards memory.
const QUEUE: usize = 1024;

/// What a caller decides about its client.
#[derive(Clone)]
pub struct Options {
    /// Who asks: shown as `stanchion/VERSION (component)` in the audit log.
    pub component: String,
    /// The deadline of each request that is not a stream.
    pub deadline: Duration,
    /// The caller's own layers, the first one nearest to the caller.
    pub layers: Vec<ApiLayer>,
}

impl Options {
    /// The defaults, for this component.
    pub fn new(component: impl Into<String>) -> Self {
        Self {
            component: component.into(),
            deadline: DEADLINE,
            layers: Vec::new(),
        }
    }

    /// Adds a layer inside those that are there.
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

/// Why there is no client.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The configuration (kubeconfig, or the pod's service account) cannot be used.
    #[error("cannot make a client for {url}: {source}; check the kubeconfig or the service account")]
    Config {
        /// The cluster's address.
        url: Box<http::Uri>,
        /// What is wrong with it.
        source: Box<kube::Error>,
    },
    /// The component's name has characters that a header cannot carry.
    #[error("\"{0}\" cannot be part of a user agent; use letters, digits, commas and dashes")]
    Component(String),
}

/// Makes the client of this configuration.
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

/// The same client over a service that is already there: a server in this process, or a test's.
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
        .layer(DeadlineLayer::new(options.deadline))
        .layer(RetryLayer::new(RetryReads::default()))
        // A retry needs a service that can be cloned, and kube's cannot.
        .layer(BufferLayer::new(QUEUE))
        .layer(ApiCallsLayer::new(metrics.api().clone()))
        .service(service)
}
