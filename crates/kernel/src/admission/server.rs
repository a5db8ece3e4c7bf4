//! HTTPS for the webhooks: bounded in every way that a client could abuse.

use std::{io, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use axum::{
    Router,
    body::{Body, to_bytes},
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
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::{debug, warn};

use super::{certificates::Serving, review::review, webhook::Webhook};

/// A review carries the object twice, and etcd takes 1.5 MiB of it.
const MAX_BODY: usize = 8 * 1024 * 1024;
/// The API server keeps a few connections; more than this is somebody else.
const MAX_CONNECTIONS: usize = 256;
/// For the TLS handshake, for a request's header, and for its body.
const PATIENCE: Duration = Duration::from_secs(10);
/// For the requests that run when the server stops.
const DRAIN: Duration = Duration::from_secs(5);

pub(super) struct Server {
    listener: TcpListener,
    addr: SocketAddr,
    tls: TlsAcceptor,
    router: Router,
}

impl Server {
    pub(super) async fn bind(
        addr: SocketAddr,
        webhooks: Arc<[Webhook]>,
        serving: Arc<Serving>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(addr).await?;
        let tls = serving.server_config().map_err(io::Error::other)?;
        Ok(Self {
            addr: listener.local_addr()?,
            listener,
            tls: TlsAcceptor::from(Arc::new(tls)),
            router: router(&webhooks),
        })
    }

    pub(super) fn add(&mut self, router: Router) {
        self.router = std::mem::take(&mut self.router).merge(router);
    }

    pub(super) fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Answers until `shutdown`, then lets the running requests finish.
    pub(super) async fn serve(self, shutdown: CancellationToken) {
        let Self {
            listener,
            tls,
            router,
            ..
        } = self;
        let (slots, connections) = (Arc::new(Semaphore::new(MAX_CONNECTIONS)), TaskTracker::new());
        let accept = async {
            loop {
                // Never fails: the semaphore is not closed.
                let slot = slots.clone().acquire_owned().await;
                match listener.accept().await {
                    Ok((stream, peer)) => {
                        let (tls, router, shutdown) = (tls.clone(), router.clone(), shutdown.clone());
                        connections.spawn(async move {
                            if let Err(error) = connection(stream, tls, router, shutdown).await {
                                debug!(%peer, %error, "a webhook connection ended early");
                            }
                            drop(slot);
                        });
                    }
                    Err(error) => {
                        // Out of file descriptors, most likely: some will be closed in a moment.
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

fn router(webhooks: &[Webhook]) -> Router {
    webhooks.iter().fold(Router::new(), |router, webhook| {
        let webhook = webhook.clone();
        router.route(
            &webhook.path(),
            post(move |body: Body| {
                let webhook = webhook.clone();
                async move { answer(&webhook, body).await }
            }),
        )
    })
}

async fn answer(webhook: &Webhook, body: Body) -> Response {
    match tokio::time::timeout(PATIENCE, to_bytes(body, MAX_BODY)).await {
        Ok(Ok(body)) => review(webhook, &body).await,
        Ok(Err(error)) => (StatusCode::PAYLOAD_TOO_LARGE, error.to_string()).into_response(),
        Err(_) => StatusCode::REQUEST_TIMEOUT.into_response(),
    }
}

async fn connection(
    stream: TcpStream,
    tls: TlsAcceptor,
    router: Router,
    shutdown: CancellationToken,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let stream = tokio::time::timeout(PATIENCE, tls.accept(stream)).await??;
    let mut http = auto::Builder::new(TokioExecutor::new());
    http.http1()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE);
    http.http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PATIENCE)
        .keep_alive_timeout(PATIENCE);
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router)));
    tokio::select! {
        result = &mut connection => return result,
        () = shutdown.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    connection.await
}
