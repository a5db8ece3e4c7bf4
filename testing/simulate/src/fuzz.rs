//! Random changes of a spec, from its schema, and these questions about each:
//!
//! - Does the object converge, with a status about this spec?
//! - When the change is undone, is everything as it was before?
//! - Is everything as it would be if the object had been made like this? Only an object that becomes ready is compared.
//! - Is nothing left of it when it is deleted?
//!
//! After a change that cannot be reverted, only the first is asked, and the object is made anew. A condition of the
//! object may say that something stays. Nothing is disturbed, and what the API server refuses does not count. [`ground`] is
//! what it runs on.

mod ground;

use std::fmt;
use std::iter::Sum;
use std::panic::resume_unwind;
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use kube::api::{DeleteParams, DynamicObject, PostParams};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use serde_json::{Value, json};
use stanchion_testkit::cluster;
use tokio::time::{Instant, sleep};

use self::ground::Ground;
use crate::generate;
use crate::properties::{self, Violation};
use crate::scenario::{Kind, Scenario};
use crate::{cluster as objects, user};

/// How long the garbage collection of a deleted object may take.
const COLLECTED_WITHIN: Duration = Duration::from_mins(2);

/// A scenario whose objects can be changed at random.
pub trait Changeable: Scenario {
    /// The kind that is changed.
    const KIND: Kind;
    /// The object that is changed, and the one that is made like it. No other text contains these names.
    const NAMES: [&'static str; 2] = ["subject1", "subject2"];
    /// The condition of an object that has what it asks for.
    const READY: &'static str = "Ready";
    /// Fields whose change cannot be reverted, and why that is so.
    const ONE_WAY: &'static [(&'static str, &'static str)];

    /// The condition of an object about which something stays that its spec no longer asks for.
    const STAYS: Option<&'static str> = None;

    /// An object that becomes ready.
    fn base(&self, name: &str) -> Value;

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

    /// Text about an object without its name, and without what follows from its name.
    fn without_name(text: &str, name: &str) -> String {
        text.replace(name, "<name>")
    }

    /// What a deleted object has left outside the cluster.
    fn left_of(&self, name: &str) -> Vec<String> {
        let left = self.outside_of(name);
        if left == self.outside_of("nobody") {
            Vec::new()
        } else {
            vec![left.to_string()]
        }
    }

    /// Objects that outlive this one on purpose.
    fn outlived_by(name: &str) -> Vec<(Kind, String)> {
        let _ = name;
        Vec::new()
    }

    /// Removes what a deleted object may keep outside the cluster.
    fn forget(&self, name: &str) {
        let _ = name;
    }
}

/// What was done, and found.
#[derive(Debug, Default)]
pub struct Report {
    /// Changes that the API server accepted, and that were followed to the end.
    pub changes: usize,
    /// Those of them that cannot be reverted.
    pub one_way: usize,
    /// Changes that it refused.
    pub refused: usize,
    /// Accepted changes that no new object is compared with: it was refused, or did not become ready.
    pub uncompared: usize,
    /// How many changes led to a finding.
    pub findings: usize,
}

impl Sum for Report {
    fn sum<I: Iterator<Item = Self>>(reports: I) -> Self {
        reports.fold(Self::default(), |one, other| Self {
            changes: one.changes + other.changes,
            one_way: one.one_way + other.one_way,
            refused: one.refused + other.refused,
            uncompared: one.uncompared + other.uncompared,
            findings: one.findings + other.findings,
        })
    }
}

/// A change after which something does not hold.
#[derive(Debug)]
pub struct Finding {
    /// The number of the change.
    pub number: usize,
    /// Which field.
    pub field: String,
    /// The spec after the change.
    pub spec: Value,
    /// What does not hold.
    pub what: Vec<String>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "change {}, spec{}: {}", self.number, self.field, self.spec)?;
        for line in &self.what {
            writeln!(f, "    {line}")?;
        }
        Ok(())
    }
}

/// Makes the changes on several threads. Each thread has an API server and a seed of its own: the first one, the next one, and
/// so on. On a real control plane there is one thread, because all objects are in one namespace.
pub fn fuzz_beside<S: Changeable>(
    first: u64,
    changes: usize,
    jobs: usize,
    found: impl Fn(u64, &Finding) + Sync,
) -> Report {
    let jobs = if is_real() {
        1
    } else {
        jobs.clamp(1, changes.max(1))
    };
    let found = &found;
    thread::scope(|scope| {
        let start = |(job, seed)| {
            let share = changes / jobs + usize::from(job < changes % jobs);
            scope.spawn(move || fuzz::<S>(seed, share, |finding| found(seed, finding)))
        };
        let running: Vec<_> = (0..jobs).zip(first..).map(start).collect();
        let reports = running.into_iter().map(ScopedJoinHandle::join);
        reports
            .map(|report| report.unwrap_or_else(|panic| resume_unwind(panic)))
            .sum()
    })
}

fn is_real() -> bool {
    cluster::Kind::chosen() == cluster::Kind::Real
}

/// Makes so many changes, and says what is found as soon as it is.
pub fn fuzz<S: Changeable>(seed: u64, changes: usize, found: impl FnMut(&Finding)) -> Report {
    fastrand::seed(seed);
    let is_real = is_real();
    let runtime = if is_real {
        tokio::runtime::Builder::new_multi_thread().enable_all().build()
    } else {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().start_paused(true).build()
    };
    let runtime = runtime.expect("a runtime");
    runtime.block_on(Box::pin(async move {
        let ground = if is_real {
            Ground::real().await
        } else {
            Ground::simulated(seed).await
        };
        Bench::<S>(ground).change(seed, changes, found).await
    }))
}

struct Bench<S: Scenario>(Ground<S>);

impl<S: Changeable> Bench<S> {
    async fn change(&self, seed: u64, changes: usize, mut found: impl FnMut(&Finding)) -> Report {
        let definition = S::definitions()
            .into_iter()
            .find(|definition| definition.spec.names.kind == S::KIND.kind)
            .expect("the kind's definition");
        let schema = generate::spec_of(&definition);
        let mut random = StdRng::seed_from_u64(seed);
        let mut report = Report::default();
        let base = self.0.scenario().base(S::NAMES[0]);
        let mut before = self.begin(&base).await;
        while report.changes < changes && report.changes + report.refused < changes * 20 {
            let mut wanted = base.clone();
            let field = generate::change(&schema, &mut wanted["spec"], &mut random);
            if wanted == base {
                continue;
            }
            if self.put(&wanted).await.is_err() {
                report.refused += 1;
                continue;
            }
            report.changes += 1;
            let mut what = Vec::new();
            let after = self.settled(S::NAMES[0], &mut what).await;
            if let Err(error) = self.put(&base).await {
                what.push(format!("the change cannot be undone: {error}"));
            }
            let mut elsewhere = S::leads_elsewhere(&field);
            if !elsewhere {
                let undone = self.settled(S::NAMES[0], &mut what).await;
                let back = properties::differences(&before, &undone);
                // What the object itself says is no finding.
                elsewhere = !back.is_empty() && says_what_stays::<S>(&undone);
                if !elsewhere {
                    what.extend(back.into_iter().map(|line| format!("the way back: {line}")));
                }
                let compared = self.compare(&wanted, &after, &mut what).await;
                report.uncompared += usize::from(!compared);
            }
            report.one_way += usize::from(elsewhere);
            if elsewhere || !what.is_empty() {
                self.delete(S::NAMES[0], &mut what).await;
                before = self.begin(&base).await;
            }
            if !what.is_empty() {
                report.findings += 1;
                found(&Finding {
                    number: report.changes,
                    field,
                    spec: wanted["spec"].clone(),
                    what,
                });
            }
        }
        report
    }

    /// Makes the object that is changed, where there is nothing of it.
    async fn begin(&self, base: &Value) -> Value {
        self.forget(S::NAMES[0]).await;
        self.put(base).await.expect("the base is accepted");
        let mut found = Vec::new();
        let state = self.settled(S::NAMES[0], &mut found).await;
        assert!(found.is_empty(), "the base itself: {found:?}");
        assert!(is_ready::<S>(&state), "the base is not ready: {state}");
        state
    }

    /// Makes an object like the changed one: what differs, and what is left of it when it is deleted? Says whether they were
    /// compared.
    async fn compare(&self, changed: &Value, after: &Value, what: &mut Vec<String>) -> bool {
        let [parent, other] = S::NAMES;
        let fresh = changed.to_string().replace(parent, other);
        let fresh: Value = serde_json::from_str(&fresh).unwrap_or_default();
        if self.put(&fresh).await.is_err() {
            return false;
        }
        let made = self.settled(other, what).await;
        // An object that cannot be made as it is asked for keeps what it had, and a new one has nothing.
        let is_comparable = is_ready::<S>(&made);
        if is_comparable {
            let differences = properties::differences(&made, after).into_iter();
            what.extend(differences.map(|line| format!("made like this: {line}")));
        }
        self.delete(other, what).await;
        let left = self.0.scenario().left_of(other).into_iter();
        what.extend(left.map(|left| format!("a deleted object has left {left}")));
        let left = self.left(other).await.into_iter();
        what.extend(left.map(|left| format!("{left} is left of a deleted object")));
        self.forget(other).await;
        is_comparable
    }

    /// The objects that are there of a deleted one, without those that outlive it on purpose.
    async fn left(&self, name: &str) -> Vec<String> {
        let state = self.state(name).await;
        let mut left = Vec::new();
        for (kind, objects) in state["objects"].as_object().into_iter().flatten() {
            for found in objects.as_object().into_iter().flat_map(|objects| objects.keys()) {
                if !S::is_kept(kind, &found.replace("<name>", name)) {
                    left.push(format!("{kind} {found}"));
                }
            }
        }
        left
    }

    /// Removes what a deleted object has left on purpose.
    async fn forget(&self, name: &str) {
        for (kind, name) in S::outlived_by(name) {
            let objects = user::api(self.0.client(), &kind);
            let _ = objects.delete(&name, &DeleteParams::default()).await;
        }
        self.0.scenario().forget(name);
    }

    /// Makes an object, or replaces it as a whole.
    async fn put(&self, object: &Value) -> Result<(), kube::Error> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let objects = user::api(self.0.client(), &S::KIND);
        loop {
            let mut wanted: DynamicObject =
                serde_json::from_value(object.clone()).map_err(kube::Error::SerdeError)?;
            let Some(found) = objects.get_opt(name).await? else {
                return objects.create(&PostParams::default(), &wanted).await.map(|_| ());
            };
            wanted.metadata = found.metadata;
            match objects.replace(name, &PostParams::default(), &wanted).await {
                // The operator has written in between.
                Err(kube::Error::Api(status)) if status.reason == "Conflict" => {}
                replaced => return replaced.map(|_| ()),
            }
        }
    }

    /// Deletes an object, and waits until it is gone, with what it owned: a real cluster collects that later, and a new
    /// object of the same name waits for it.
    async fn delete(&self, name: &str, what: &mut Vec<String>) {
        let objects = user::api(self.0.client(), &S::KIND);
        let _ = objects.delete(name, &DeleteParams::default()).await;
        if !user::gone_if_terminating(&objects, name).await {
            what.push("it cannot be deleted".to_owned());
        }
        what.extend(self.0.rest(None).await);
        let end = Instant::now() + COLLECTED_WITHIN;
        while Instant::now() < end && !self.left(name).await.is_empty() {
            sleep(Duration::from_secs(1)).await;
        }
    }

    /// Everything that belongs to an object, once nothing is written any more.
    async fn settled(&self, name: &str, what: &mut Vec<String>) -> Value {
        let api = user::api(self.0.client(), &S::KIND);
        what.extend(self.0.rest(Some((&api, name))).await);
        if let Ok(object) = api.get(name).await {
            let object = serde_json::to_value(object).unwrap_or_default();
            let stale = properties::conditions(&S::KIND, name, &object);
            what.extend(stale.iter().map(Violation::to_string));
        }
        self.state(name).await
    }

    /// Everything that belongs to an object, with its name taken out.
    async fn state(&self, name: &str) -> Value {
        let mut all = objects::objects::<S>(self.0.client()).await;
        for objects in all.values_mut() {
            if let Some(objects) = objects.as_object_mut() {
                objects.retain(|key, _| key == name || key.starts_with(&format!("{name}-")));
            }
        }
        let mut end = json!({ "objects": all, "world": self.0.scenario().outside_of(name) });
        S::comparable(&mut end);
        let text = properties::normal(end).to_string();
        serde_json::from_str(&S::without_name(&text, name)).unwrap_or_default()
    }
}

fn is_ready<S: Changeable>(state: &Value) -> bool {
    let object = &state["objects"][S::KIND.kind]["<name>"];
    !properties::claims(object, &[S::READY]).is_empty()
}

fn says_what_stays<S: Changeable>(state: &Value) -> bool {
    let object = &state["objects"][S::KIND.kind]["<name>"];
    S::STAYS.is_some_and(|condition| !properties::claims(object, &[condition]).is_empty())
}
