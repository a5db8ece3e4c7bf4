//! Random changes of a spec, from its schema, and three questions about each:
//!
//! - Does the object come to rest, with a status about this spec?
//! - When the change is undone, is everything as it was before?
//! - Is everything as it would be if the object had been made like this? Only an object that becomes ready is compared.
//!
//! Time is paused, nothing is disturbed, and what the API server refuses does not count.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use kube::Client;
use kube::api::{DeleteParams, DynamicObject, PostParams};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use serde_json::{Value, json};
use stanchion_kernel::ambient::Scripted;

use crate::generate;
use crate::network::{Lease, Network, Record};
use crate::properties::{self, Violation};
use crate::replica::{Replicas, SimulationEnv, timings};
use crate::run::come_to_rest;
use crate::scenario::{Kind, Scenario};
use crate::schedule::Setup;
use crate::{cluster, user};

/// A story whose objects can be changed at random.
pub trait Changeable: Scenario {
    /// The kind that is changed.
    const KIND: Kind;
    /// Fields that lead to another place, from which there is no way back, and why that is so.
    const ONE_WAY: &'static [(&'static str, &'static str)];

    /// An object that becomes ready.
    fn base(name: &str) -> Value;

    /// Whether the way back from a change of this field, or the way there, need not lead to the same place.
    fn leads_elsewhere(field: &str) -> bool {
        Self::ONE_WAY
            .iter()
            .any(|(one_way, _)| field.starts_with(one_way))
    }

    /// What an object has outside the cluster.
    fn outside_of(&self, name: &str) -> Value {
        let _ = name;
        Value::Null
    }
}

/// The object that is changed, and the one that is made like it. No other text contains these names.
const NAMES: [&str; 2] = ["subject1", "subject2"];

/// What was done, and found.
#[derive(Debug, Default)]
pub struct Report {
    /// Changes that the API server accepted, and that were followed to the end.
    pub changes: usize,
    /// Changes that it refused.
    pub refused: usize,
    /// What was found.
    pub findings: Vec<Finding>,
}

/// A change after which something does not hold.
#[derive(Debug)]
pub struct Finding {
    /// Which field.
    pub field: String,
    /// The spec after the change.
    pub spec: Value,
    /// What does not hold.
    pub what: Vec<String>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "spec{}: {}", self.field, self.spec)?;
        for line in &self.what {
            writeln!(f, "    {line}")?;
        }
        Ok(())
    }
}

/// Makes so many changes.
pub fn fuzz<S: Changeable>(seed: u64, changes: usize) -> Report {
    fastrand::seed(seed);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("a runtime");
    runtime.block_on(Box::pin(changing::<S>(seed, changes)))
}

async fn changing<S: Changeable>(seed: u64, changes: usize) -> Report {
    let wall: Timestamp = "2030-01-01T00:00:00Z".parse().expect("a time");
    let _script = Scripted::begin(wall, seed);
    let bench = Bench::<S>::start(seed, wall).await;
    let definition = S::definitions()
        .into_iter()
        .find(|definition| definition.spec.names.kind == S::KIND.kind)
        .expect("the kind's definition");
    let schema = generate::spec_of(&definition);
    let mut random = StdRng::seed_from_u64(seed);
    let mut report = Report::default();
    let base = S::base(NAMES[0]);
    bench.put(&base).await.expect("the base is accepted");
    let mut found = Vec::new();
    let before = bench.settled(NAMES[0], &mut found).await;
    assert!(found.is_empty(), "the base itself: {found:?}");
    while report.changes < changes && report.changes + report.refused < changes * 20 {
        let mut wanted = base.clone();
        let field = generate::change(&schema, &mut wanted["spec"], &mut random);
        if wanted == base || S::leads_elsewhere(&field) {
            continue;
        }
        if bench.put(&wanted).await.is_err() {
            report.refused += 1;
            continue;
        }
        report.changes += 1;
        let what = bench.follow(&base, &wanted, &before).await;
        if !what.is_empty() {
            let spec = wanted["spec"].clone();
            report.findings.push(Finding { field, spec, what });
        }
    }
    report
}

struct Bench<S: Scenario> {
    client: Client,
    record: Record,
    env: Arc<SimulationEnv<S>>,
    // Held for its end: the operator runs as long as this is there.
    #[allow(dead_code)]
    replicas: Replicas<S>,
}

impl<S: Changeable> Bench<S> {
    async fn start(seed: u64, wall: Timestamp) -> Self {
        let sandbox = cluster::start::<S>(seed, wall).await;
        let client = sandbox.client();
        let scenario = S::new();
        scenario.prepare(&client).await;
        let record = Record::new(Lease::None, timings().renew_deadline());
        let setup = Setup {
            replicas: 1,
            streaming_lists: true,
        };
        let network = Network::new(seed, record.clone());
        let env = Arc::new(SimulationEnv {
            scenario,
            sandbox,
            network,
            setup,
        });
        Self {
            client,
            record,
            replicas: Replicas::start(&env),
            env,
        }
    }

    /// Makes an object, or replaces it as a whole.
    async fn put(&self, object: &Value) -> Result<(), kube::Error> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let objects = user::api(&self.client, &S::KIND);
        let mut wanted: DynamicObject =
            serde_json::from_value(object.clone()).map_err(kube::Error::SerdeError)?;
        let Some(found) = objects.get_opt(name).await? else {
            return objects.create(&PostParams::default(), &wanted).await.map(|_| ());
        };
        wanted.metadata = found.metadata;
        let replaced = objects.replace(name, &PostParams::default(), &wanted).await;
        replaced.map(|_| ())
    }

    /// The change is in: what does not hold of it, of its undoing, and of an object that was made like this?
    async fn follow(&self, base: &Value, changed: &Value, before: &Value) -> Vec<String> {
        let mut what = Vec::new();
        let after = self.settled(NAMES[0], &mut what).await;
        if let Err(error) = self.put(base).await {
            what.push(format!("the change cannot be undone: {error}"));
        }
        let undone = self.settled(NAMES[0], &mut what).await;
        let back = properties::differences(before, &undone);
        what.extend(back.into_iter().map(|line| format!("the way back: {line}")));
        let [parent, other] = NAMES;
        let fresh = changed.to_string().replace(parent, other);
        let fresh: Value = serde_json::from_str(&fresh).unwrap_or_default();
        if self.put(&fresh).await.is_ok() {
            let made = self.settled(other, &mut what).await;
            // An object that cannot be made as it is asked for keeps what it had, and a new one has nothing.
            let differences = if is_ready(&made, S::KIND.kind) {
                properties::differences(&made, &after)
            } else {
                Vec::new()
            };
            what.extend(
                differences
                    .into_iter()
                    .map(|line| format!("made like this: {line}")),
            );
            let objects = user::api(&self.client, &S::KIND);
            let _ = objects.delete(other, &DeleteParams::default()).await;
            self.rest(&mut what).await;
            let left = self.objects(other).await;
            if left["world"] != self.nothing() {
                what.push(format!("a deleted object has left {}", left["world"]));
            }
            let left = left["objects"].as_object().into_iter().flatten();
            for (kind, objects) in left {
                for name in objects.as_object().into_iter().flat_map(|objects| objects.keys()) {
                    if !S::is_kept(kind, &name.replace("<name>", other)) {
                        what.push(format!("{kind} {name} is left of a deleted object"));
                    }
                }
            }
        }
        what
    }

    async fn rest(&self, what: &mut Vec<String>) {
        what.extend(
            come_to_rest(&self.record)
                .await
                .map(|violation| violation.to_string()),
        );
    }

    /// Everything that belongs to an object, once nothing is written any more.
    async fn settled(&self, name: &str, what: &mut Vec<String>) -> Value {
        self.rest(what).await;
        let objects = user::api(&self.client, &S::KIND);
        if let Ok(object) = objects.get(name).await {
            let object = serde_json::to_value(object).unwrap_or_default();
            let stale = properties::conditions(&S::KIND, name, &object);
            what.extend(stale.iter().map(Violation::to_string));
        }
        self.objects(name).await
    }

    /// Everything that belongs to an object, with its name taken out.
    async fn objects(&self, name: &str) -> Value {
        let mut all = cluster::objects::<S>(&self.client).await;
        for objects in all.values_mut() {
            if let Some(objects) = objects.as_object_mut() {
                objects.retain(|key, _| key == name || key.starts_with(&format!("{name}-")));
            }
        }
        let mut end = json!({ "objects": all, "world": self.env.scenario.outside_of(name) });
        S::comparable(&mut end);
        let text = properties::normal(end).to_string();
        serde_json::from_str(&text.replace(name, "<name>")).unwrap_or_default()
    }

    /// What an object that there never was has outside the cluster.
    fn nothing(&self) -> Value {
        self.env.scenario.outside_of("nobody")
    }
}

fn is_ready(state: &Value, kind: &str) -> bool {
    let conditions = &state["objects"][kind]["<name>"]["status"]["conditions"];
    let mut conditions = conditions.as_array().into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}
