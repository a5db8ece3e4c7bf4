//! Carries a schedule out, and asks the properties.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::api::DeleteParams;
use serde_json::{Value, json};
use stanchion_kernel::ambient::Scripted;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::task::AbortOnDropHandle;

use crate::cluster;
use crate::disturbance::Disturbance;
use crate::network::{Lease, Network, Record};
use crate::panics;
use crate::properties::{self, Property, Violation};
use crate::replica::{Replicas, SimulationEnv, timings};
use crate::scenario::{Kind, Operation, REST, Scenario};
use crate::schedule::{Act, Schedule};
use crate::user;

/// How long it may take to converge, and to delete everything.
const CONVERGENCE_TIMEOUT: Duration = Duration::from_hours(2);

/// How the words about a run without disturbances begin.
pub const UNDISTURBED: &str = "undisturbed: ";

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// What does not hold.
    pub violations: Vec<Violation>,
    /// Everything that was there when all had converged.
    pub end: Value,
    /// What was seen, in order.
    pub lines: Vec<String>,
}

impl Outcome {
    /// The conditions at the end, a line for each object.
    pub fn conditions<S: Scenario>(&self) -> Vec<String> {
        let of_kind = |kind: &Kind| self.end["objects"][kind.kind].as_object().into_iter().flatten();
        let all = S::PRIMARY.iter().flat_map(of_kind);
        all.map(|(name, object)| format!("{name}: {}", object["status"]["conditions"]))
            .collect()
    }
}

/// Runs a schedule. The same schedule has the same outcome.
pub fn run<S: Scenario>(schedule: &Schedule) -> Outcome {
    // The watches' backoff takes its jitter from here.
    fastrand::seed(schedule.seed);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("a runtime");
    panics::taken();
    let mut outcome = runtime.block_on(Box::pin(simulate::<S>(schedule)));
    let panics = panics::taken().into_iter();
    outcome
        .violations
        .extend(panics.map(|what| Violation::new(Property::Panics, what)));
    outcome
}

/// Runs a schedule with and without its disturbances: what does not hold?
pub fn judge<S: Scenario>(schedule: &Schedule) -> Vec<Violation> {
    judge_beside::<S>(schedule, &undisturbed::<S>(schedule))
}

/// Runs a schedule without its disturbances, and what else holds only without any.
pub fn undisturbed<S: Scenario>(schedule: &Schedule) -> Outcome {
    let schedule = schedule.undisturbed();
    let mut outcome = run::<S>(&schedule);
    outcome.violations.extend(S::prompt(schedule.seed));
    outcome
}

/// Runs a schedule, and compares it with the run without disturbances: what does not hold?
pub fn judge_beside<S: Scenario>(schedule: &Schedule, undisturbed: &Outcome) -> Vec<Violation> {
    if !undisturbed.violations.is_empty() {
        let violations = undisturbed.violations.iter();
        return violations
            .map(|Violation { property, what }| Violation::new(*property, format!("{UNDISTURBED}{what}")))
            .collect();
    }
    let mut outcome = run::<S>(schedule);
    let differences = properties::differences(&undisturbed.end, &outcome.end).into_iter();
    outcome
        .violations
        .extend(differences.map(|what| Violation::new(Property::SameEnd, what)));
    outcome.violations
}

/// One moment of a run.
enum Moment {
    Operate(Operation),
    Disturb(Disturbance),
    /// The end of a disturbance that lasts.
    Over(Disturbance),
}

/// All moments in order of time.
fn timeline(schedule: &Schedule) -> Vec<(Duration, Moment)> {
    let mut moments = Vec::new();
    for step in &schedule.steps {
        match &step.act {
            Act::Operate(operation) => moments.push((step.at, Moment::Operate(operation.clone()))),
            Act::Disturb(what) => {
                moments.push((step.at, Moment::Disturb(*what)));
                if let Disturbance::Outage(time)
                | Disturbance::Partition(_, time)
                | Disturbance::Kill(_, time) = what
                {
                    moments.push((step.at + *time, Moment::Over(*what)));
                }
            }
        }
    }
    moments.sort_by_key(|(at, _)| *at);
    moments
}

async fn simulate<S: Scenario>(schedule: &Schedule) -> Outcome {
    let wall: Timestamp = "2030-01-01T00:00:00Z".parse().expect("a time");
    let script = Scripted::begin(wall, schedule.seed);
    let sandbox = cluster::start::<S>(schedule.seed, wall).await;
    let client = sandbox.client();
    let lease = if schedule.setup.replicas > 1 {
        Lease::Free
    } else {
        Lease::None
    };
    let scenario = S::new();
    scenario.prepare(&client).await;
    let record = Record::new(lease, timings().renew_deadline());
    let network = Network::new(schedule.seed, record.clone());
    let env = Arc::new(SimulationEnv {
        scenario,
        sandbox,
        network,
        setup: schedule.setup,
    });
    let mut replicas = Replicas::start(&env);
    let (operations, queue) = mpsc::unbounded_channel();
    let acting = {
        let (env, client, record) = (Arc::clone(&env), client.clone(), record.clone());
        tokio::spawn(async move { user::act(&env.scenario, client, record, queue).await })
    };
    let watching = {
        let (env, client) = (Arc::clone(&env), client.clone());
        // Nobody can see what the world is like while something stands in the way.
        let undisturbed = !schedule
            .steps
            .iter()
            .any(|step| matches!(step.act, Act::Disturb(_)));
        AbortOnDropHandle::new(tokio::spawn(async move {
            if !undisturbed || S::CLAIMS.is_empty() {
                return Vec::new();
            }
            watch_claims(&env.scenario, &client).await
        }))
    };
    let start = Instant::now();
    for (at, moment) in timeline(schedule) {
        sleep_until(start + at).await;
        match moment {
            Moment::Operate(operation) => operations.send(operation).expect("users act until the end"),
            Moment::Disturb(what) => disturb(what, &env, &mut replicas, &script).await,
            Moment::Over(what) => over(what, &env, &mut replicas).await,
        }
    }
    let mut violations = if watching.is_finished() {
        watching.await.expect("nobody panics")
    } else {
        Vec::new()
    };
    env.network.heal();
    env.scenario.heal();
    replicas.begin_all();
    drop(operations);
    violations.extend(acting.await.expect("users do not panic"));
    violations.extend(come_to_rest(&record, REST).await);
    record.note("at rest");
    let mut end = json!({ "objects": cluster::objects::<S>(&client).await, "world": env.scenario.world() });
    violations.extend(check_conditions::<S>(&end));
    violations.extend(properties::leaks(&end["objects"]));
    violations.extend(delete_everything::<S>(&client, &env.scenario, &record).await);
    let faults = env.scenario.faults().into_iter();
    violations.extend(faults.map(|what| Violation::new(Property::Alone, what)));
    let seen = record.violations();
    violations.extend(
        seen.into_iter()
            .map(|what| Violation::new(Property::Network, what)),
    );
    drop(replicas);
    S::comparable(&mut end);
    Outcome {
        violations,
        end: properties::normal(end),
        lines: record.lines(),
    }
}

async fn disturb<S: Scenario>(
    what: Disturbance,
    env: &SimulationEnv<S>,
    replicas: &mut Replicas<S>,
    script: &Scripted,
) {
    let network = &env.network;
    network.record().note(&format!("! {what:?}"));
    match what {
        Disturbance::Request { which, skip, effect } => network.arm(which, skip, effect),
        Disturbance::CutWatches { expired } => {
            if expired {
                cluster::forget_history(&env.sandbox).await;
            }
            network.cut_watches();
        }
        Disturbance::Outage(_) => network.away(true),
        Disturbance::Partition(replica, _) => network.cut_off(replica, true),
        Disturbance::Kill(replica, _) => replicas.kill(replica),
        Disturbance::StealLease => {
            if cluster::steal_lease(&env.sandbox).await {
                network.record().leased(Lease::Stolen(Instant::now()));
            }
        }
        Disturbance::MoveClock(seconds) => script.shift(SignedDuration::from_secs(seconds)),
        Disturbance::Freeze(time) => tokio::time::advance(time).await,
    }
}

async fn over<S: Scenario>(what: Disturbance, env: &SimulationEnv<S>, replicas: &mut Replicas<S>) {
    env.network.record().note(&format!("! over: {what:?}"));
    match what {
        Disturbance::Outage(_) => {
            cluster::forget_history(&env.sandbox).await;
            env.network.away(false);
        }
        Disturbance::Partition(replica, _) => env.network.cut_off(replica, false),
        Disturbance::Kill(replica, _) => replicas.begin(replica),
        _ => {}
    }
}

/// Returns when an object claims what has not been true for long.
async fn watch_claims<S: Scenario>(scenario: &S, client: &kube::Client) -> Vec<Violation> {
    loop {
        sleep(Duration::from_secs(1)).await;
        let Some(long) = scenario.lost_for() else { continue };
        let objects = cluster::objects::<S>(client).await;
        let of_kind = |kind: &Kind| objects[kind.kind].as_object().into_iter().flatten();
        let all = S::PRIMARY.iter().flat_map(of_kind);
        // A suspended object says what was true when it was suspended.
        let followed = all.filter(|(_, object)| object["spec"]["suspend"] != true);
        let found: Vec<Violation> = followed
            .flat_map(|(name, object)| {
                let claims = properties::claims(object, S::CLAIMS).into_iter();
                claims.map(move |claim| {
                    let what = format!(
                        "{name} still claims {claim}, {} seconds after everybody must have noticed that it is not so",
                        long.as_secs()
                    );
                    Violation::new(Property::Claims, what)
                })
            })
            .collect();
        if !found.is_empty() {
            return found;
        }
    }
}

/// Waits until nothing is written for a while.
pub(crate) async fn come_to_rest(record: &Record, rest: Duration) -> Option<Violation> {
    let end = Instant::now() + CONVERGENCE_TIMEOUT;
    let begun = Instant::now();
    while Instant::now() < end {
        if begun.elapsed() >= rest && record.writing().1 >= rest {
            return None;
        }
        sleep(Duration::from_secs(30)).await;
    }
    let last = record.last_write();
    let what = format!("two hours after the last change something is still written, at last {last}");
    Some(Violation::new(Property::Rest, what))
}

fn check_conditions<S: Scenario>(end: &Value) -> Vec<Violation> {
    let mut found = Vec::new();
    for kind in S::PRIMARY {
        for (name, object) in end["objects"][kind.kind].as_object().into_iter().flatten() {
            if object["metadata"]["deletionTimestamp"].is_null() {
                found.extend(properties::conditions(kind, name, object));
            } else {
                let what = format!("{} {name} is being deleted, and nobody does it", kind.kind);
                found.push(Violation::new(Property::Served, what));
            }
        }
    }
    found
}

/// Deletes what users have made; nothing must be left of it.
async fn delete_everything<S: Scenario>(
    client: &kube::Client,
    scenario: &S,
    record: &Record,
) -> Vec<Violation> {
    record.note("users delete everything");
    for kind in S::PRIMARY {
        let objects = user::api(client, kind);
        let named: Vec<String> = cluster::names(&objects).await;
        for name in named {
            let _ = objects.delete(&name, &DeleteParams::default()).await;
        }
    }
    let end = Instant::now() + CONVERGENCE_TIMEOUT;
    let mut found = Vec::new();
    while Instant::now() < end {
        sleep(Duration::from_mins(1)).await;
        let objects = cluster::objects::<S>(client).await;
        found = properties::leftovers(&objects, S::is_kept);
        for kind in S::PRIMARY {
            for name in objects[kind.kind]
                .as_object()
                .into_iter()
                .flat_map(|map| map.keys())
            {
                let what = format!("{} {name} cannot be deleted", kind.kind);
                found.push(Violation::new(Property::Served, what));
            }
        }
        let left = scenario.left();
        found.extend(
            left.into_iter()
                .map(|what| Violation::new(Property::NothingLeft, what)),
        );
        if found.is_empty() {
            break;
        }
    }
    found
}
