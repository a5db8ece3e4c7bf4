//! The health checks for the kubelet and the server for metrics.
//!
//! Ready means able to work: each part of the operator that has to start first adds a named [`Check`], and `/readyz`
//! lists those that have not passed. An address is bound before anything else starts, so that an address in use ends
//! the process with one line instead of a pod that never becomes ready.

use std::{collections::BTreeMap, fmt::Write as _, io, net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{RawQuery, State},
    http::{StatusCode, header::CONTENT_TYPE},
    response::IntoResponse,
    routing::get,
};
use parking_lot::Mutex;
use thiserror::Error;
use tokio::{net::TcpListener, time::timeout};
use tokio_util::sync::CancellationToken;

use super::metrics::{self, Metrics};

/// How long an open request may delay the end of the process.
const GRACE: Duration = Duration::from_secs(5);

/// Named checks that must all pass. Clones share the checks.
#[derive(Clone, Debug, Default)]
pub struct Checks(Arc<Mutex<BTreeMap<String, Option<String>>>>);

impl Checks {
    /// Adds a check, which fails with this reason until it passes.
    pub fn add(&self, name: impl Into<String>, waits_for: impl Into<String>) -> Check {
        let check = Check {
            name: name.into(),
            checks: self.clone(),
        };
        check.fail(waits_for);
        check
    }

    /// Whether all pass.
    pub fn pass(&self) -> bool {
        self.0.lock().values().all(Option::is_none)
    }

    /// The failing checks, with their reasons.
    pub fn failing(&self) -> Vec<(String, String)> {
        let failing = |(name, reason): (&String, &Option<String>)| Some((name.clone(), reason.clone()?));
        self.0.lock().iter().filter_map(failing).collect()
    }

    /// In the format of the API server's `/readyz?verbose`.
    fn answer(&self, verbose: bool) -> (StatusCode, String) {
        let pass = self.pass();
        if pass && !verbose {
            return (StatusCode::OK, "ok".to_owned());
        }
        let mut text = String::new();
        for (name, reason) in self.0.lock().iter() {
            let _ = match reason {
                None => writeln!(text, "[+]{name} ok"),
                Some(reason) => writeln!(text, "[-]{name} failed: {reason}"),
            };
        }
        (
            if pass {
                StatusCode::OK
            } else {
                StatusCode::SERVICE_UNAVAILABLE
            },
            text,
        )
    }
}

/// One condition that must be met.
#[derive(Clone, Debug)]
pub struct Check {
    name: String,
    checks: Checks,
}

impl Check {
    /// The condition is met.
    pub fn pass(&self) {
        self.checks.0.lock().insert(self.name.clone(), None);
    }

    /// The condition is not met, for this reason.
    pub fn fail(&self, reason: impl Into<String>) {
        self.checks
            .0
            .lock()
            .insert(self.name.clone(), Some(reason.into()));
    }
}

/// The checks of `/livez` and `/readyz`.
#[derive(Clone, Debug, Default)]
pub struct Health {
    /// If one fails, the process should be restarted. Without any check, an answer is enough.
    pub live: Checks,
    /// If one fails, the process cannot work yet, or no longer.
    pub ready: Checks,
}

/// The routes of the health checks. `?verbose` also lists the checks that pass.
pub fn probes(health: Health) -> Router {
    async fn probe(State(checks): State<Checks>, RawQuery(query): RawQuery) -> impl IntoResponse {
        checks.answer(query.is_some_and(|query| query.starts_with("verbose")))
    }
    Router::new()
        // The former name, which existing manifests still use.
        .route("/healthz", get(probe).with_state(health.live.clone()))
        .route("/livez", get(probe).with_state(health.live))
        .route("/readyz", get(probe).with_state(health.ready))
}

/// The route of the metrics.
pub fn scraped(metrics: Metrics) -> Router {
    async fn scrape(State(metrics): State<Metrics>) -> impl IntoResponse {
        ([(CONTENT_TYPE, metrics::CONTENT_TYPE)], metrics.encode())
    }
    Router::new().route("/metrics", get(scrape).with_state(metrics))
}

/// An address cannot be listened on.
#[derive(Debug, Error)]
#[error("cannot listen on {addr} for {purpose}: {source}")]
pub struct BindError {
    purpose: &'static str,
    addr: SocketAddr,
    source: io::Error,
}

/// A server that has bound its address and does not answer yet.
#[derive(Debug)]
pub struct Bound {
    listener: TcpListener,
    addr: SocketAddr,
    router: Router,
}

/// Binds the address; port 0 selects any free one.
pub async fn bind(purpose: &'static str, addr: SocketAddr, router: Router) -> Result<Bound, BindError> {
    let failed = |source| BindError {
        purpose,
        addr,
        source,
    };
    let listener = TcpListener::bind(addr).await.map_err(failed)?;
    let addr = listener.local_addr().map_err(failed)?;
    Ok(Bound {
        listener,
        addr,
        router,
    })
}

impl Bound {
    /// The address with the actual port.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Serves until the token is cancelled; open requests are finished, for a few seconds at most.
    pub async fn serve(self, shutdown: CancellationToken) -> io::Result<()> {
        let stop = shutdown.clone();
        let serving = axum::serve(self.listener, self.router)
            .with_graceful_shutdown(async move { stop.cancelled().await });
        let mut serving = std::pin::pin!(serving.into_future());
        tokio::select! {
            ended = &mut serving => return ended,
            () = shutdown.cancelled() => {}
        }
        timeout(GRACE, serving).await.unwrap_or(Ok(()))
    }
}
