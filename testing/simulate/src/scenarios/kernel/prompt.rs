//! Runs about time: an object that hangs holds up no lane but its own, and an API server that was away is caught up with.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use kube::api::{Patch, PatchParams};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use serde_json::json;
use stanchion_kernel::ambient::Scripted;
use tokio::time::{Instant, sleep};

use super::{Kernel, WIDGET, name_of, widget};
use crate::cluster;
use crate::network::{Lease, Network, Record};
use crate::properties::{Property, Violation};
use crate::replica::{Replicas, SimulationEnv, timings};
use crate::scenario::{Operation, Scenario as _};
use crate::schedule::Setup;
use crate::user;

const WIDGETS: usize = 6;
/// A change is five messages, and each takes up to two seconds.
const BESIDE_ONE_THAT_HANGS: Duration = Duration::from_secs(10);
/// How long the API server is away.
const AWAY: Duration = Duration::from_mins(1);
const AFTER_AN_OUTAGE: Duration = Duration::from_mins(1);
/// A pass that hangs is retried by then.
const RELEASED: Duration = Duration::from_mins(3);

/// Runs this seed's changes.
pub(super) fn run(seed: u64) -> Vec<Violation> {
    fastrand::seed(seed);
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder
        .enable_all()
        .start_paused(true)
        .build()
        .expect("a runtime");
    runtime.block_on(Box::pin(async move {
        let wall: Timestamp = "2030-01-01T00:00:00Z".parse().expect("a time");
        let _script = Scripted::begin(wall, seed);
        let sandbox = cluster::start::<Kernel>(seed, wall).await;
        let client = sandbox.client();
        let mut random = StdRng::seed_from_u64(seed);
        let setup = Setup {
            replicas: 1,
            streaming_lists: random.random(),
            concurrency: random.random_range(3..=4),
        };
        let record = Record::new(Lease::None, timings().renew_deadline());
        let env = Arc::new(SimulationEnv {
            scenario: Kernel::new(),
            sandbox,
            network: Network::new(seed, record),
            setup,
        });
        let _replicas = Replicas::start(&env);
        let mut run = Run {
            env: &env,
            client,
            random,
            size: 1,
            found: Vec::new(),
        };
        run.begin().await;
        run.beside_one_that_hangs().await;
        run.after_an_outage().await;
        run.found
    }))
}

struct Run<'a> {
    env: &'a SimulationEnv<Kernel>,
    client: Client,
    random: StdRng,
    /// The last size that a widget was given.
    size: u32,
    found: Vec<Violation>,
}

impl Run<'_> {
    async fn begin(&mut self) {
        for name in (0..WIDGETS).map(name_of) {
            let Operation::Apply(_, object) = widget(&name, &json!({ "size": 1 })) else {
                return;
            };
            let widgets = user::api(&self.client, &WIDGET);
            let params = PatchParams::apply("users").force();
            let applied = widgets.patch(&name, &params, &Patch::Apply(&object)).await;
            applied.expect("a widget");
        }
        for name in (0..WIDGETS).map(name_of) {
            self.follows(&name, 1, RELEASED, "at the beginning").await;
        }
    }

    async fn beside_one_that_hangs(&mut self) {
        let hanging = name_of(self.random.random_range(0..WIDGETS));
        self.env.scenario.world.hold(&hanging);
        let last = self.resize(&hanging).await;
        let is_laned = |name: &str| name.contains('.');
        let others: Vec<String> = (0..WIDGETS)
            .map(name_of)
            .filter(|name| is_laned(name) != is_laned(&hanging))
            .collect();
        for _ in 0..6 {
            sleep(Duration::from_millis(self.random.random_range(0..20_000))).await;
            let name = others.choose(&mut self.random).expect("a widget").clone();
            let size = self.resize(&name).await;
            let when = format!("although only {hanging} of another lane hangs");
            self.follows(&name, size, BESIDE_ONE_THAT_HANGS, &when).await;
        }
        self.env.scenario.world.release(&hanging);
        self.follows(&hanging, last, RELEASED, "after it was released")
            .await;
    }

    async fn after_an_outage(&mut self) {
        self.env.network.away(true);
        let end = Instant::now() + AWAY;
        let mut wanted = Vec::new();
        for name in (0..WIDGETS).map(name_of) {
            sleep(Duration::from_millis(self.random.random_range(0..10_000))).await;
            if self.random.random() {
                let size = self.resize(&name).await;
                wanted.push((name, size));
            }
        }
        tokio::time::sleep_until(end).await;
        cluster::forget_history(&self.env.sandbox).await;
        self.env.network.away(false);
        let back = Instant::now();
        for (name, size) in wanted {
            let rest = AFTER_AN_OUTAGE.saturating_sub(back.elapsed());
            self.follows(&name, size, rest, "after the API server was away")
                .await;
        }
    }

    /// Gives a widget a size that it never had.
    async fn resize(&mut self, name: &str) -> u32 {
        self.size += 1;
        let patch = json!({ "spec": { "size": self.size } });
        let widgets = user::api(&self.client, &WIDGET);
        let patched = widgets
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await;
        patched.expect("a widget");
        self.size
    }

    /// Waits until the status says so.
    async fn follows(&mut self, name: &str, size: u32, limit: Duration, when: &str) {
        let end = Instant::now() + limit;
        let widgets = user::api(&self.client, &WIDGET);
        loop {
            let found = widgets.get(name).await.expect("a widget");
            if found.data["status"]["size"] == size {
                return;
            }
            if Instant::now() >= end {
                let seconds = limit.as_secs();
                let what = format!("{name} does not follow its spec within {seconds} seconds {when}");
                self.found.push(Violation::new(Property::Prompt, what));
                return;
            }
            sleep(Duration::from_millis(100)).await;
        }
    }
}
