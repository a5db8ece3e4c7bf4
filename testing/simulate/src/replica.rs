//! A replica of the operator, as it is in production: an election, a fence, a client, the controllers. Only the
//! connection at the bottom of its client is simulated.

use std::sync::Arc;
use std::time::Duration;

use stanchion_kernel::Scope;
use stanchion_kernel::client::{self, ApiService, Options};
use stanchion_kernel::driver::{Environment, Operator, Settings};
use stanchion_kernel::lease::{Elector, Fence, Identity, LeaseSettings, Timings};
use stanchion_kernel::telemetry::Metrics;
use stanchion_sandbox::Sandbox;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::network::{Network, Witness};
use crate::scenario::{NAMESPACE, Scenario, Seat};
use crate::schedule::Setup;

/// The Lease's name.
pub const LEASE: &str = "stanchion";

/// In the proportions of the default, and slower: a renewal every two seconds would be most of a run.
pub fn timings() -> Timings {
    let seconds = Duration::from_secs;
    Timings::new(seconds(60), seconds(40), seconds(8)).expect("timings in order")
}

/// The replicas of a run.
pub struct Replicas<S> {
    env: Arc<SimulationEnv<S>>,
    running: Vec<Option<AbortOnDropHandle<()>>>,
}

/// What every replica runs on.
pub struct SimulationEnv<S> {
    /// The scenario.
    pub scenario: S,
    /// The API server.
    pub sandbox: Sandbox,
    /// The way to it.
    pub network: Network,
    /// How they are set up.
    pub setup: Setup,
}

impl<S: Scenario> Replicas<S> {
    /// Starts all.
    pub fn start(env: &Arc<SimulationEnv<S>>) -> Self {
        let mut replicas = Self {
            env: Arc::clone(env),
            running: Vec::new(),
        };
        replicas.running.resize_with(env.setup.replicas, || None);
        for index in 0..env.setup.replicas {
            replicas.begin(index);
        }
        replicas
    }

    /// Starts one, where it does not run.
    pub fn begin(&mut self, index: usize) {
        let env = Arc::clone(&self.env);
        if let Some(slot @ None) = self.running.get_mut(index) {
            env.network.record().note(&format!("{index} begins"));
            *slot = Some(AbortOnDropHandle::new(tokio::spawn(live(env, index))));
        }
    }

    /// Kills one: what it was doing ends where it stands.
    pub fn kill(&mut self, index: usize) {
        if let Some(slot) = self.running.get_mut(index)
            && slot.take().is_some()
        {
            self.env.network.record().note(&format!("{index} is killed"));
        }
    }

    /// Starts those that do not run.
    pub fn begin_all(&mut self) {
        for index in 0..self.running.len() {
            self.begin(index);
        }
    }
}

/// A process that is started again whenever it ends.
async fn live<S: Scenario>(env: Arc<SimulationEnv<S>>, index: usize) {
    loop {
        process(&env, index).await;
        env.network.record().note(&format!("{index} has ended"));
        sleep(Duration::from_secs(1)).await;
    }
}

async fn process<S: Scenario>(env: &SimulationEnv<S>, index: usize) {
    if env.setup.replicas < 2 {
        return work(env, index, Fence::open()).await;
    }
    let settings = LeaseSettings {
        namespace: NAMESPACE.into(),
        name: LEASE.into(),
        identity: Identity::new(&format!("replica-{index}")),
        timings: timings(),
    };
    let service = ApiService::new(env.network.wire(index, &env.sandbox));
    let unfenced = client::over(
        service,
        NAMESPACE,
        &Metrics::new("simulated"),
        &Options::new("lease"),
    );
    let elector = Elector::new(unfenced, settings);
    let work = |leadership| Box::pin(work(env, index, Fence::guarded_by(leadership)));
    elector.lead(CancellationToken::new(), work).await;
}

async fn work<S: Scenario>(env: &SimulationEnv<S>, index: usize, fence: Fence) {
    let metrics = Metrics::new("simulated");
    let options = Options::new("simulated").with_layer(fence.clone());
    let service = ApiService::new(env.network.wire(index, &env.sandbox));
    let client = client::over(service, NAMESPACE, &metrics, &options);
    let environment = Environment {
        client,
        metrics,
        instance: format!("replica-{index}"),
        settings: Settings {
            concurrency: env.setup.concurrency,
            streaming_lists: env.setup.streaming_lists,
            ..Settings::default()
        },
        shutdown: CancellationToken::new(),
    };
    let mut operator = Operator::new(environment).fenced_by(fence);
    let record = env.network.record().clone();
    let witness: Witness = Arc::new(move |what| record.writes(index, what));
    let scope = Scope::Namespace(NAMESPACE.into());
    let seat = Seat {
        network: Some(env.network.clone()),
        replica: index,
        witness,
    };
    env.scenario.add(&mut operator, &scope, seat);
    operator.run().await;
}
