//! Scripted faults of the Kubernetes API, for any cluster.
//!
//! [`Faults`] is a layer for a `kube::Client`. It counts and records an operator's requests, and injects the faults of
//! networks and API servers into chosen requests: conflicts, throttling, errors before and after the request was
//! processed, lost answers, silence. It can also cut the operator off for good, as SIGKILL does. The faults depend on
//! the requests alone, so a failing run can be repeated.

mod call;
mod script;
mod service;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use kube::{Client, Config, client::ClientBuilder};
use tokio::sync::watch;
use tower::Layer;

pub use call::{Call, RequestTarget};
pub use script::{CutPoint, Fault, Moment, Rule};
pub use service::FaultyService;

/// The layer. Clones share their state.
#[derive(Clone)]
pub struct Faults(Arc<Shared>);

struct Shared {
    counts: Box<dyn Fn(&RequestTarget) -> bool + Send + Sync>,
    state: Mutex<State>,
    cut: watch::Sender<bool>,
    under_way: watch::Sender<usize>,
    /// The number of requests and of writes.
    activity: watch::Sender<(usize, usize)>,
}

#[derive(Default)]
struct State {
    rules: Vec<Rule>,
    calls: Vec<Call>,
    writes: usize,
    closed: bool,
}

impl Faults {
    /// No faults yet; every write counts.
    pub fn new() -> Self {
        Self::counting(|_| true)
    }

    /// Counts only writes to these targets. Lease renewals, for example, depend on the time and not on the operator's
    /// work.
    pub fn counting(counts: impl Fn(&RequestTarget) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(Shared {
            counts: Box::new(counts),
            state: Mutex::default(),
            cut: watch::Sender::new(false),
            under_way: watch::Sender::new(0),
            activity: watch::Sender::new((0, 0)),
        }))
    }

    /// Adds a rule. The first matching rule applies.
    #[must_use]
    pub fn with(self, rule: Rule) -> Self {
        self.script(rule);
        self
    }

    /// Adds a rule while the operator runs.
    pub fn script(&self, rule: Rule) {
        self.0.state.lock().unwrap().rules.push(rule);
    }

    /// Removes all rules.
    pub fn relent(&self) {
        self.0.state.lock().unwrap().rules.clear();
    }

    /// A client behind this layer. Its own retries are off: they would hide the faults.
    pub fn client(&self, mut config: Config) -> Client {
        config.default_retry = false;
        let builder = ClientBuilder::try_from(config).unwrap_or_else(|error| panic!("a client: {error}"));
        builder.with_layer(self).build()
    }

    /// Every request so far, in order of arrival.
    pub fn calls(&self) -> Vec<Call> {
        self.0.state.lock().unwrap().calls.clone()
    }

    /// The writes in [`Faults::calls`].
    pub fn writes(&self) -> Vec<Call> {
        self.calls()
            .into_iter()
            .filter(|call| call.write.is_some())
            .collect()
    }

    /// Whether a request has met a [`Fault::Cut`].
    pub fn is_cut(&self) -> bool {
        self.0.state.lock().unwrap().closed
    }

    /// Returns when a [`Fault::Cut`] has happened: drop the operator then.
    pub async fn cut(&self) {
        let _ = self.0.cut.subscribe().wait_for(|&cut| cut).await;
    }

    /// Returns when the server has answered all requests, so that the record is complete.
    pub async fn settled(&self) {
        let _ = self
            .0
            .under_way
            .subscribe()
            .wait_for(|&requests| requests == 0)
            .await;
    }

    /// Returns when the operator has sent a request and has then not written anything for `window`.
    pub async fn quiet(&self, window: Duration) {
        let mut activity = self.0.activity.subscribe();
        let _ = activity.wait_for(|&(requests, _)| requests > 0).await;
        loop {
            self.settled().await;
            let writes = activity.borrow_and_update().1;
            let more = activity.wait_for(|&(_, now)| now > writes);
            if tokio::time::timeout(window, more).await.is_err() {
                return;
            }
        }
    }
}

impl Default for Faults {
    fn default() -> Self {
        Self::new()
    }
}

impl<S> Layer<S> for Faults {
    type Service = FaultyService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        FaultyService::new(self.clone(), inner)
    }
}
