//! The initial objects of a cluster.

use std::sync::Arc;

use serde_json::{Value, json};

use super::workloads::NODE;
use crate::data;
use crate::lifecycle;
use crate::server::Server;
use crate::store::{self, Expect, text};

/// Creates the initial objects that do not exist yet.
pub(crate) fn objects(server: &Arc<Server>, node: bool) {
    let simulated = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": NODE, "labels": {
            "kubernetes.io/arch": "amd64", "kubernetes.io/hostname": NODE, "kubernetes.io/os": "linux", "type": "simulated",
        }},
        "spec": {},
        "status": {
            "allocatable": {"cpu": "10k", "memory": "10Ti", "pods": "10k"},
            "capacity": {"cpu": "10k", "memory": "10Ti", "pods": "10k"},
            "conditions": [{
                "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "simulated",
                "lastHeartbeatTime": server.clock.seconds(), "lastTransitionTime": server.clock.seconds(),
            }],
        },
    });
    for object in data::bootstrap()
        .map(|object| object as &Value)
        .chain(node.then_some(&simulated))
    {
        let (group, version) = text(object, "/apiVersion")
            .split_once('/')
            .unwrap_or(("", text(object, "/apiVersion")));
        let Some(resource) = server
            .registry
            .of_kind(group, Some(version), text(object, "/kind"))
        else {
            continue;
        };
        let mut new = object.clone();
        lifecycle::begin(server, &resource, &mut new);
        for kept in ["spec", "status"] {
            if let Some(value) = object.get(kept) {
                new[kept] = value.clone();
            }
        }
        let key = store::key(
            text(object, "/metadata/namespace"),
            text(object, "/metadata/name"),
        );
        let _ = server.store.put(&resource.storage, &key, Expect::Absent, new);
    }
}
