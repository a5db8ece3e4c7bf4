//! The probes of the kubelet and the door of the scraper.
//!
//! Ready means able to work: each part of the operator that has to come up first adds a named [`Check`], and
//! `/readyz` names those that have not passed. An address is bound before anything else starts, so that one that is
//! taken ends the process with one line instead of a pod that never becomes ready.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::{
    Router,
    extract::{RawQuery, State},
    http::{StatusCode, header::CONTENT_TYPE},
    response::IntoResponse,
    routing::get,
};
use thiserror::Error;
use tokio::{net::TcpListener, time::timeout};
use tokio_util::sync::CancellationToken;

use super::metrics::{self, Metrics};

/// How long an open request may hold up the end of the process.
const GRACE: Duration = Duration::from_secs(5);

/// Named checks that must all pass. A clone is a second handle on the same checks.
#[derive(Clone, Debug, Default)]
pub struct Checks(Arc<Mutex<BTreeMap<String, Option<String>>>>);

impl Checks {
    /// Adds a check, which fails with this reason until it is said to pass.
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
        self.all().values().all(Option::is_none)
    }

    /// The failing ones, with their reasons.
    pub fn failing(&self) -> Vec<(String, String)> {
        let failing = |(name, reason): (&String, &Option<String>)| Some((name.clone(), reason.clone()?));
        self.all().iter().filter_map(failing).collect()
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Option<String>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// In the form of the API server's own `/readyz?verbose`.
    fn answer(&self, verbose: bool) -> (StatusCode, String) {
        let pass = self.pass();
        if pass && !verbose {
            return (StatusCode::OK, "ok".to_owned());
        }
        let mut text = String::new();
        for (name, reason) in self.all().iter() {
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

/// One thing that must be in order.
#[derive(Clone, Debug)]
pub struct Check {
    name: String,
    checks: Checks,
}

impl Check {
    /// It is in order.
    pub fn pass(&self) {
        self.checks.all().insert(self.name.clone(), None);
    }

    /// It is not, because of this.
    pub fn fail(&self, reason: impl Into<String>) {
        self.checks.all().insert(self.name.clone(), Some(reason.into()));
    }
}

/// What `/livez` and `/readyz` ask.
#[derive(Clone, Debug, Default)]
pub struct Health {
    /// Failing, the process should be restarted. Without any check, answering is proof enough.
    pub live: Checks,
    /// Failing, the process cannot work yet, or no longer.
    pub ready: Checks,
}

/// The routes of the probes. `?verbose` lists the checks that pass, too.
pub fn probes(health: Health) -> Router {
    async fn probe(State(checks): State<Checks>, RawQuery(query): RawQuery) -> impl IntoResponse {
        checks.answer(query.is_some_and(|query| query.starts_with("verbose")))
    }
    Router::new()
        // The name of old, which manifests that people have still use.
        .route("/healthz", get(probe).with_state(health.live.clone()))
        .route("/livez", get(probe).with_state(health.live))
        .route("/readyz", get(probe).with_state(health.ready))
}

/// The route of the scraper.
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

/// A server whose address is taken and which does not answer yet.
#[derive(Debug)]
pub struct Bound {
    listener: TcpListener,
    addr: SocketAddr,
    router: Router,
}

/// Takes the address; port 0 takes any that is free.
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
    /// The address, with the port that it really has.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Answers until the token is cancelled; open requests are finished, for a few seconds at most.
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
