//! Simulated workloads: Deployments, `ReplicaSets`, `StatefulSets`, `DaemonSets` and Jobs create pods, and the image
//! name of a pod decides its state. No container runs, and no status claims that one did. Images can be mapped to local
//! commands, which then run as processes.

mod deployment;
mod environment;
mod event;
mod job;
mod pod;
mod process;
mod replicas;
mod schedule;
mod stateful;

pub(crate) use process::{Logs, Mapping};
pub(crate) use schedule::NODE;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::actor::{Actor, note};
use crate::error::ApiError;
use crate::server::Server;
use crate::store::{Feed, Object, text};

const PODS: &str = "/pods";
const DEPLOYMENTS: &str = "apps/deployments";
const REPLICA_SETS: &str = "apps/replicasets";
const STATEFUL_SETS: &str = "apps/statefulsets";
const DAEMON_SETS: &str = "apps/daemonsets";
const JOBS: &str = "batch/jobs";

/// Options of the simulation.
#[derive(Debug, Clone)]
pub(crate) struct Workloads {
    /// How long a pod takes to become ready.
    pub(crate) pod_start: Duration,
    /// Images that run as local commands.
    pub(crate) commands: Vec<Mapping>,
}

/// An object to reconcile, by kind and key.
type Item = (&'static str, String);

/// The workload controller: acts, and requeues objects.
struct Simulation {
    actor: Actor,
    pod_start: Duration,
    commands: Vec<Mapping>,
    /// By the uid of the pod.
    processes: HashMap<String, process::Running>,
    later: mpsc::UnboundedSender<Item>,
    timers: JoinSet<()>,
}

pub(crate) fn start(server: &Arc<Server>, workloads: Workloads, tasks: &mut JoinSet<()>) {
    let (later, due) = mpsc::unbounded_channel();
    let simulation = Simulation {
        actor: Actor::new(server, "workload-simulation"),
        pod_start: workloads.pod_start,
        commands: workloads.commands,
        processes: HashMap::new(),
        later,
        timers: JoinSet::new(),
    };
    tasks.spawn(simulation.run(due));
}

fn kind(storage: &str) -> Option<&'static str> {
    [PODS, DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS, DAEMON_SETS, JOBS]
        .into_iter()
        .find(|known| *known == storage)
}

/// The controller of an object, as kind and key.
fn controller(object: &Object) -> Option<Item> {
    let owners = object.value().pointer("/metadata/ownerReferences")?.as_array()?;
    let owner = owners
        .iter()
        .find(|owner| owner.get("controller") == Some(&json!(true)))?;
    let storage = match text(owner, "/kind") {
        "Deployment" => DEPLOYMENTS,
        "ReplicaSet" => REPLICA_SETS,
        "StatefulSet" => STATEFUL_SETS,
        "DaemonSet" => DAEMON_SETS,
        "Job" => JOBS,
        _ => return None,
    };
    Some((
        storage,
        crate::store::key(object.namespace(), text(owner, "/name")),
    ))
}

impl Simulation {
    async fn run(mut self, mut due: mpsc::UnboundedReceiver<Item>) {
        let mut feed = Feed::new(self.actor.store());
        loop {
            let mut items: BTreeSet<Item> = BTreeSet::new();
            tokio::select! {
                biased;
                changes = feed.next() => {
                    for (storage, change) in changes {
                        let Some(storage) = kind(&storage) else { continue };
                        if change.deleted || change.after.is_deleting() {
                            self.processes.remove(change.after.uid());
                        }
                        items.insert((storage, change.key.to_string()));
                        items.extend(controller(&change.after));
                    }
                }
                Some(item) = due.recv() => {
                    items.insert(item);
                }
                Some(_) = self.timers.join_next(), if !self.timers.is_empty() => {}
            }
            for (storage, key) in items {
                let Some(object) = self.actor.store().get(storage, &key) else {
                    continue;
                };
                let result = Box::pin(self.look(storage, &object)).await;
                note(storage, result);
            }
        }
    }

    async fn look(&mut self, storage: &'static str, object: &Arc<Object>) -> Result<(), ApiError> {
        match storage {
            PODS => self.pod(object).await,
            DEPLOYMENTS => self.deployment(object).await,
            REPLICA_SETS => self.replica_set(object).await,
            STATEFUL_SETS => self.stateful_set(object).await,
            DAEMON_SETS => self.daemon_set(object).await,
            _ => self.job(object).await,
        }
    }

    /// Requeues an object after some time.
    fn return_to(&mut self, storage: &'static str, object: &Object, after: Duration) {
        let (later, key) = (
            self.later.clone(),
            crate::store::key(object.namespace(), object.name()),
        );
        self.timers.spawn(async move {
            tokio::time::sleep(after).await;
            let _ = later.send((storage, key));
        });
    }

    /// The objects of a kind that this owner controls.
    fn controlled(&self, storage: &str, owner: &Object) -> Vec<Arc<Object>> {
        let all = self.actor.store().list(storage, Some(owner.namespace())).objects;
        let mine = |object: &Object| {
            let owners = object
                .value()
                .pointer("/metadata/ownerReferences")
                .and_then(Value::as_array);
            owners.into_iter().flatten().any(|reference| {
                text(reference, "/uid") == owner.uid() && reference.get("controller") == Some(&json!(true))
            })
        };
        all.into_iter()
            .map(|(_, object)| object)
            .filter(|object| mine(object))
            .collect()
    }
}

/// The owner reference to an owner.
fn owned_by(owner: &Object) -> Value {
    json!([{
        "apiVersion": owner.text("/apiVersion"), "kind": owner.text("/kind"), "name": owner.name(),
        "uid": owner.uid(), "controller": true, "blockOwnerDeletion": true,
    }])
}

/// A pod from its owner's template.
fn pod_of(owner: &Object, suffix: &str, more_labels: &[(&str, &str)]) -> Value {
    let template = owner
        .value()
        .pointer("/spec/template")
        .cloned()
        .unwrap_or_default();
    let prefix = format!("{}-", owner.name());
    let mut metadata = json!({
        "ownerReferences": owned_by(owner), "generateName": prefix, "name": format!("{prefix}{suffix}"),
    });
    for key in ["labels", "annotations"] {
        if let Some(map) = template.pointer(&format!("/metadata/{key}")) {
            metadata[key] = map.clone();
        }
    }
    for (key, value) in more_labels {
        metadata["labels"][*key] = json!(value);
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]})
}

fn is_ready(pod: &Object) -> bool {
    let conditions = pod
        .value()
        .pointer("/status/conditions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    !pod.is_deleting()
        && conditions
            .into_iter()
            .any(|c| text(c, "/type") == "Ready" && text(c, "/status") == "True")
}

fn number(object: &Object, pointer: &str) -> i64 {
    object
        .value()
        .pointer(pointer)
        .and_then(Value::as_i64)
        .unwrap_or_default()
}

/// A short hash of a template.
fn hash(template: &Value) -> String {
    const LETTERS: &[u8] = b"bcdf456789ghjklmnpqrstvwxz2";
    let mut state: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in template.to_string().bytes() {
        state = (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    (0..10)
        .filter_map(|step| LETTERS.get(usize::try_from((state >> (step * 6)) % 27).unwrap_or_default()))
        .map(|letter| char::from(*letter))
        .collect()
}

/// Sets a number in a status; zero is omitted, as in the original.
fn put(status: &mut Value, key: &str, value: i64) {
    if let Some(map) = status.as_object_mut() {
        if value == 0 {
            map.shift_remove(key);
        } else {
            map.insert(key.to_owned(), json!(value));
        }
    }
}
