//! What changes are tried on: the sandbox with paused time, or a real control plane with the time of the machine.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::api::DynamicObject;
use kube::{Api, Client};
use stanchion_kernel::Scope;
use stanchion_kernel::ambient::Scripted;
use stanchion_kernel::client::{self, Options};
use stanchion_kernel::driver::{Environment, Operator, Settings};
use stanchion_kernel::telemetry::Metrics;
use stanchion_testkit::cluster::Cluster;
use stanchion_testkit::faults::Faults;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::cluster;
use crate::network::{Lease, Network, Record};
use crate::replica::{Replicas, SimulationEnv, timings};
use crate::run::come_to_rest;
use crate::scenario::{NAMESPACE, Scenario, Seat};
use crate::schedule::Setup;

/// Without a write for so long, an operator on a real control plane has done what it had to do.
const QUIET: Duration = Duration::from_millis(1500);
/// How long it may take to report about a spec there.
const REPORTED_WITHIN: Duration = Duration::from_mins(1);

/// A cluster with the operator of a scenario.
pub(super) enum Ground<S: Scenario> {
    Simulated {
        client: Client,
        record: Record,
        env: Arc<SimulationEnv<S>>,
        /// The operator runs as long as this is there.
        _replicas: Replicas<S>,
        _script: Scripted,
    },
    Real {
        client: Client,
        writes: Faults,
        scenario: S,
        _operator: AbortOnDropHandle<()>,
        _cluster: Cluster,
    },
}

impl<S: Scenario> Ground<S> {
    /// The sandbox.
    pub(super) async fn simulated(seed: u64) -> Self {
        let wall: Timestamp = "2030-01-01T00:00:00Z".parse().expect("a time");
        let script = Scripted::begin(wall, seed);
        let sandbox = cluster::start::<S>(seed, wall).await;
        let client = sandbox.client();
        let scenario = S::new();
        scenario.prepare(&client).await;
        let record = Record::new(Lease::None, timings().renew_deadline());
        let setup = Setup {
            replicas: 1,
            streaming_lists: true,
            concurrency: 4,
        };
        let network = Network::new(seed, record.clone());
        let env = Arc::new(SimulationEnv {
            scenario,
            sandbox,
            network,
            setup,
        });
        Self::Simulated {
            client,
            record,
            _replicas: Replicas::start(&env),
            env,
            _script: script,
        }
    }

    /// A real control plane, for this process alone.
    pub(super) async fn real() -> Self {
        let started = Cluster::start().await;
        let client = started.client().await;
        cluster::furnish::<S>(&client).await;
        let scenario = S::new();
        scenario.leave_simulation().await;
        scenario.prepare(&client).await;
        // An Event is counted each time that something fails again.
        let (metrics, writes) = (
            Metrics::new("fuzz"),
            Faults::counting(|target| target.resource != "events"),
        );
        let options = Options::new("fuzz").with_layer(writes.clone());
        let config = started.config().await;
        let version = client
            .apiserver_version()
            .await
            .expect("the version of the cluster");
        let environment = Environment {
            client: client::build(config, &metrics, &options).expect("a client"),
            metrics,
            instance: "fuzz".into(),
            settings: Settings {
                streaming_lists: Settings::streams_lists(&version),
                ..Settings::default()
            },
            shutdown: CancellationToken::new(),
        };
        let mut operator = Operator::new(environment);
        let seat = Seat {
            network: None,
            replica: 0,
            witness: Arc::new(|_| {}),
        };
        scenario.add(&mut operator, &Scope::Namespace(NAMESPACE.into()), seat);
        let readiness = operator.readiness();
        let operator = AbortOnDropHandle::new(tokio::spawn(operator.run()));
        readiness.wait().await;
        Self::Real {
            client,
            writes,
            scenario,
            _operator: operator,
            _cluster: started,
        }
    }

    pub(super) fn client(&self) -> &Client {
        match self {
            Self::Simulated { client, .. } | Self::Real { client, .. } => client,
        }
    }

    pub(super) fn scenario(&self) -> &S {
        match self {
            Self::Simulated { env, .. } => &env.scenario,
            Self::Real { scenario, .. } => scenario,
        }
    }

    /// Waits until nothing is written any more, and until the status of an object is about its spec. Says what does not
    /// converge.
    pub(super) async fn rest(&self, object: Option<(&Api<DynamicObject>, &str)>) -> Option<String> {
        match self {
            Self::Simulated { record, .. } => {
                let restless = come_to_rest(record, S::FUZZ_REST).await;
                // Nobody reads the trace of a thousand changes, which would fill the memory.
                record.forget_lines();
                restless.map(|violation| violation.to_string())
            }
            Self::Real { writes, .. } => {
                if let Some((api, name)) = object {
                    reported(api, name).await;
                }
                let rest = writes.quiet(QUIET + S::PODS.unwrap_or_default());
                let in_time = tokio::time::timeout(REPORTED_WITHIN * 5, rest).await;
                in_time
                    .err()
                    .map(|_| "Rest: it is still written after minutes".to_owned())
            }
        }
    }
}

/// Waits until the status of an object is about its spec, as long as that may take.
async fn reported(objects: &Api<DynamicObject>, name: &str) {
    let end = Instant::now() + REPORTED_WITHIN;
    while Instant::now() < end {
        let Ok(object) = objects.get(name).await else {
            return;
        };
        let observed = object.data["status"]["observedGeneration"].as_i64();
        if observed == object.metadata.generation {
            return;
        }
        sleep(Duration::from_millis(50)).await;
    }
}
