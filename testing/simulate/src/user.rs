//! The users: what they ask for is done in order, each thing after the other, and nothing disturbs them.

use std::time::Duration;

use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use kube::{Api, Client};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use crate::network::Record;
use crate::properties::{Property, Violation};
use crate::scenario::{Kind, NAMESPACE, Operation, Scenario};

/// How long a deletion may take, and with it everything else.
const CONDITION_TIMEOUT: Duration = Duration::from_hours(1);

/// Objects of a kind.
pub(crate) fn api(client: &Client, kind: &Kind) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), NAMESPACE, &kind.resource())
}

/// Does what it is sent, until there is no more.
pub(crate) async fn act<S: Scenario>(
    scenario: &S,
    client: Client,
    record: Record,
    mut operations: mpsc::UnboundedReceiver<Operation>,
) -> Vec<Violation> {
    let mut unserved = Vec::new();
    while let Some(operation) = operations.recv().await {
        record.note(&format!("users {operation}"));
        let done = match &operation {
            Operation::Apply(kind, object) => {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                gone_if_terminating(&api(&client, kind), name).await && {
                    apply(&api(&client, kind), name, object, &record).await;
                    true
                }
            }
            Operation::Delete(kind, name) => {
                let deleted = api(&client, kind).delete(name, &DeleteParams::default()).await;
                tolerate(deleted.map(|_| ()), &record);
                true
            }
            Operation::Merge(kind, name, patch) => {
                let params = PatchParams {
                    field_manager: Some("by-hand".into()),
                    ..PatchParams::default()
                };
                let patched = api(&client, kind)
                    .patch(name, &params, &Patch::Merge(patch))
                    .await;
                tolerate(patched.map(|_| ()), &record);
                true
            }
            Operation::Outside(what) => {
                scenario.outside(what);
                true
            }
        };
        if !done {
            let what = format!(
                "not deleted within {} minutes, so that this cannot be done: {operation}",
                CONDITION_TIMEOUT.as_secs() / 60
            );
            unserved.push(Violation::new(Property::Served, what));
        }
    }
    unserved
}

async fn apply(objects: &Api<DynamicObject>, name: &str, object: &serde_json::Value, record: &Record) {
    let params = PatchParams::apply("users").force();
    let applied = objects.patch(name, &params, &Patch::Apply(object)).await;
    tolerate(applied.map(|_| ()), record);
}

/// An object of this name that is on its way out is waited for, as everybody would. Says whether it has gone.
pub(crate) async fn gone_if_terminating(objects: &Api<DynamicObject>, name: &str) -> bool {
    let end = Instant::now() + CONDITION_TIMEOUT;
    while Instant::now() < end {
        let object = objects.get_metadata_opt(name).await.ok().flatten();
        if object.is_none_or(|object| object.metadata.deletion_timestamp.is_none()) {
            return true;
        }
        sleep(Duration::from_secs(1)).await;
    }
    false
}

/// What a schema refuses, or what is not there, is the same in every run.
fn tolerate(result: Result<(), kube::Error>, record: &Record) {
    match result {
        Ok(()) => {}
        Err(kube::Error::Api(status)) if (400..500).contains(&status.code) => {
            record.note(&format!("users are refused: {} {}", status.code, status.message));
        }
        Err(error) => panic!("the API server fails users, whom nothing disturbs: {error}"),
    }
}
