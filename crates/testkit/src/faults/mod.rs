//! Faults of the Kubernetes API, on a script, in front of any cluster.
//!
//! [`Faults`] is a layer for a `kube::Client`. It counts and records what an operator asks for, and
//! does to chosen requests what networks and API servers do: conflicts, throttling, errors before and
//! after the work was done, lost answers, silence; or it cuts the operator off for good, as SIGKILL
//! does. What happens depends on the requests alone, so that a failing run can be repeated.

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

pub use call::{Call, Target};
pub use script::{CutPoint, Fault, Moment, Rule};
pub use service::FaultyService;

/// The layer; clones are the same layer.
#[derive(Clone)]
pub struct Faults(Arc<Shared>);

struct Shared {
    counts: Box<dyn Fn(&Target) -> bool + Send + Sync>,
    state: Mutex<State>,
    cut: watch::Sender<bool>,
    under_way: watch::Sender<usize>,
    /// How many requests and how many writes there were.
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

    /// Counts as writes only those to these targets. Renewals of a lease, for example, come by the
    /// clock and not by what the operator does.
    pub fn counting(counts: impl Fn(&Target) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(Shared {
            counts: Box::new(counts),
            state: Mutex::default(),
            cut: watch::Sender::new(false),
            under_way: watch::Sender::new(0),
            activity: watch::Sender::new((0, 0)),
        }))
    }

    /// Adds a rule. The first rule that applies to a request decides.
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

    /// Those of [`Faults::calls`] that are writes.
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

    /// Returns when a [`Fault::Cut`] has happened: the moment to drop the operator.
    pub async fn cut(&self) {
        let _ = self.0.cut.subscribe().wait_for(|&cut| cut).await;
    }

    /// Returns when the server has answered all that it was sent, so that the record is complete.
    pub async fn settled(&self) {
        let _ = self
            .0
            .under_way
            .subscribe()
            .wait_for(|&requests| requests == 0)
            .await;
    }

    /// Returns when the operator has begun to ask and has then, for as long as `window`, written nothing.
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
