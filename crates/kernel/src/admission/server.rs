//! The HTTPS server of the webhooks, with a limit for everything that a client could abuse.

use std::{io, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::post,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::watch,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::{BoxError, ServiceBuilder};
use tracing::{debug, warn};

use super::{
    budget::{BodyError, Budget},
    certificates::Serving,
    review::{TIMEOUT, review},
    webhook::Webhook,
};

/// Timeout of the TLS handshake, of a request's header, and of its body.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a connection may be open without a request that succeeds. There are few connections, and an API server that
/// comes back opens another one.
const USELESS: Duration = Duration::from_secs(30);
/// Maximum number of concurrent requests on one connection. An API server has few.
const STREAMS: u32 = 32;
/// Flow control window of a connection.
const WINDOW: u32 = 256 * 1024;
/// The largest header.
const HEADER: u32 = 16 * 1024;
/// How long running requests may take when the server stops.
const DRAIN: Duration = Duration::from_secs(5);

pub(super) struct Server {
    listener: TcpListener,
    addr: SocketAddr,
    tls: TlsAcceptor,
    router: Router,
    budget: Budget,
}

impl Server {
    pub(super) async fn bind(
        addr: SocketAddr,
        webhooks: Arc<[Webhook]>,
        serving: Arc<Serving>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(addr).await?;
        let tls = serving.server_config().map_err(io::Error::other)?;
        let budget = Budget::default();
        Ok(Self {
            addr: listener.local_addr()?,
            listener,
            tls: TlsAcceptor::from(Arc::new(tls)),
            router: router(&webhooks, &budget),
            budget,
        })
    }

    pub(super) fn add(&mut self, router: Router) {
        self.router = std::mem::take(&mut self.router).merge(router);
    }

    pub(super) fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Serves until `shutdown`, then finishes the running requests.
    pub(super) async fn serve(self, shutdown: CancellationToken) {
        let Self {
            listener,
            tls,
            router,
            budget,
            ..
        } = self;
        let connections = TaskTracker::new();
        let accept = async {
            loop {
                let slot = budget.connection().await;
                match listener.accept().await {
                    Ok((stream, peer)) => {
                        let Some(of_address) = budget.of_address(peer.ip()) else {
                            debug!(%peer, "too many webhook connections from one address");
                            continue;
                        };
                        let (tls, router, shutdown) = (tls.clone(), router.clone(), shutdown.clone());
                        connections.spawn(async move {
                            if let Err(error) = connection(stream, tls, router, shutdown).await {
                                debug!(%peer, %error, "a webhook connection ended early");
                            }
                            drop((slot, of_address));
                        });
                    }
                    Err(error) => {
                        // Probably out of file descriptors: some will be closed in a moment.
                        warn!(%error, "cannot accept a webhook connection");
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                }
            }
        };
        shutdown.run_until_cancelled(accept).await;
        drop(listener);
        connections.close();
        if tokio::time::timeout(DRAIN, connections.wait()).await.is_err() {
            warn!("webhook requests were still running at shutdown");
        }
    }
}

fn router(webhooks: &[Webhook], budget: &Budget) -> Router {
    webhooks.iter().fold(Router::new(), |router, webhook| {
        let (webhook, budget) = (webhook.clone(), budget.clone());
        router.route(
            &webhook.path(),
            post(move |body: Body| {
                let (webhook, budget) = (webhook.clone(), budget.clone());
                async move { answer(&webhook, &budget, body).await }
            }),
        )
    })
}

async fn answer(webhook: &Webhook, budget: &Budget, body: Body) -> Response {
    let taken = match tokio::time::timeout(CLIENT_TIMEOUT, budget.take_in(body)).await {
        Ok(Ok(taken)) => taken,
        Ok(Err(error @ BodyError::TooLarge)) => {
            return (StatusCode::PAYLOAD_TOO_LARGE, error.to_string()).into_response();
        }
        Ok(Err(error)) => return (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
        Err(_) => return StatusCode::REQUEST_TIMEOUT.into_response(),
    };
    // The API server waits no longer, and applies the failure policy.
    match tokio::time::timeout(TIMEOUT, budget.reading(taken.bytes.len())).await {
        Ok(Some(_reading)) => review(webhook, &taken.bytes).await,
        _ => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

async fn connection(
    stream: TcpStream,
    tls: TlsAcceptor,
    router: Router,
    shutdown: CancellationToken,
) -> Result<(), BoxError> {
    let stream = tokio::time::timeout(CLIENT_TIMEOUT, tls.accept(stream)).await??;
    talk(stream, router, shutdown).await
}

/// Answers the requests of one client, for as long as it is a useful one.
async fn talk(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
    shutdown: CancellationToken,
) -> Result<(), BoxError> {
    let mut http = auto::Builder::new(TokioExecutor::new());
    http.http1()
        .timer(TokioTimer::new())
        .max_buf_size(WINDOW as usize)
        .header_read_timeout(CLIENT_TIMEOUT);
    http.http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(HEADER)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .keep_alive_interval(CLIENT_TIMEOUT)
        .keep_alive_timeout(CLIENT_TIMEOUT);
    let (successes, mut heard) = watch::channel(());
    let router = ServiceBuilder::new()
        .map_response(move |response: Response| {
            if response.status().is_success() {
                successes.send_replace(());
            }
            response
        })
        .service(router);
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router)));
    let useless = async { while let Ok(Ok(())) = tokio::time::timeout(USELESS, heard.changed()).await {} };
    tokio::select! {
        result = &mut connection => return result,
        () = shutdown.cancelled() => connection.as_mut().graceful_shutdown(),
        () = useless => {
            connection.as_mut().graceful_shutdown();
            return tokio::time::timeout(CLIENT_TIMEOUT, connection).await?;
        }
    }
    connection.await
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use hyper::client::conn::http2;
    use tokio::time::{Instant, sleep};

    use super::*;

    /// How long a client that requests this path every few seconds keeps its connection, at most five minutes.
    async fn lasts(path: &str) -> Duration {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let router = Router::new().route("/known", get(|| async { "yes" }));
        let talking = tokio::spawn(talk(ours, router, CancellationToken::new()));
        let (mut sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(theirs))
            .await
            .unwrap();
        let connection = tokio::spawn(connection);
        let began = Instant::now();
        while began.elapsed() < Duration::from_mins(5) {
            let request = axum::http::Request::get(format!("http://host{path}")).body(Body::empty());
            if sender.send_request(request.unwrap()).await.is_err() {
                break;
            }
            sleep(Duration::from_secs(7)).await;
        }
        let lasted = began.elapsed();
        connection.abort();
        talking.abort();
        lasted
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_without_a_useful_request_ends() {
        assert!(lasts("/known").await >= Duration::from_mins(5));
        assert!((USELESS..USELESS * 2).contains(&lasts("/unknown").await));
    }
}
