//! What runs for the examples, to be compared before and after.

use std::collections::BTreeMap;

use serde_json::Value;
use stanchion_testkit::cluster::{Cluster, Kind, Requests};
use stanchion_testkit::wait;

use super::super::install::NAMESPACE;
use super::super::kubectl;
use crate::DEADLINE;

/// Pods, and everything that they run from.
const KINDS: &str = "pods,deployments,statefulsets,replicasets,jobs,services,configmaps,secrets,ingresses,\
                     networkpolicies,horizontalpodautoscalers,poddisruptionbudgets,persistentvolumeclaims,\
                     serviceaccounts,rolebindings,helmreleases,helmrepositories,perconapgclusters,redis,\
                     redisreplications,redissentinels,elasticsearches";

/// Every object in these namespaces, without what controllers report about it: an object that was deleted and created
/// again has another identity.
pub(super) async fn objects(cluster: &Cluster, namespaces: &[String]) -> BTreeMap<String, Value> {
    let listed = kubectl(cluster)
        .run(&["get", KINDS, "-A", "-o", "json"])
        .await
        .unwrap();
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let mut objects = BTreeMap::new();
    for object in listed["items"].as_array().unwrap() {
        let mut object = object.clone();
        let meta = object["metadata"].as_object_mut().unwrap();
        let place = meta["namespace"].as_str().unwrap().to_owned();
        let name = meta["name"].as_str().unwrap().to_owned();
        if !namespaces.contains(&place) {
            continue;
        }
        for reported in ["resourceVersion", "managedFields"] {
            meta.remove(reported);
        }
        // Other controllers write it whenever they look.
        object.as_object_mut().unwrap().remove("status");
        let key = format!("{} {place}/{name}", object["kind"].as_str().unwrap());
        objects.insert(key, object);
    }
    objects
}

/// Waits until the autoscalers of a real cluster have raised their Deployments to the minimum, which they do on their own
/// time.
pub(super) async fn scaled(cluster: &Cluster) {
    if cluster.kind() == Kind::Sandbox {
        return;
    }
    wait::eventually(DEADLINE, "the autoscalers", async || {
        let listed = kubectl(cluster)
            .run(&["get", "horizontalpodautoscalers", "-A", "-o", "json"])
            .await
            .map_err(|error| error.to_string())?;
        let listed: Value = serde_json::from_str(&listed).map_err(|error| error.to_string())?;
        let number =
            |scaler: &Value, path: &str| scaler.pointer(path).and_then(Value::as_i64).unwrap_or_default();
        let low =
            listed["items"].as_array().into_iter().flatten().find(|scaler| {
                number(scaler, "/status/currentReplicas") < number(scaler, "/spec/minReplicas")
            });
        low.map_or(Ok(()), |scaler| Err(scaler.to_string()))
    })
    .await;
}

/// Asserts that nothing was created, changed or deleted, and names the first difference.
pub(super) fn same(before: &BTreeMap<String, Value>, after: &BTreeMap<String, Value>, when: &str) {
    let names = |of: &BTreeMap<String, Value>| of.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(before), names(after), "{when}");
    for (key, object) in before {
        assert_eq!(object, &after[key], "{when}: {key}");
    }
}

/// Asserts that the operator wrote nothing in the namespaces of the examples; an event changes no object.
pub(super) fn no_writes(requests: Requests, when: &str) {
    let writes = requests.writes().filter(|request| {
        !request.namespace.is_empty() && request.namespace != NAMESPACE && request.resource != "events"
    });
    assert_eq!(writes.count(), 0, "{when}: {writes:#?}");
}
