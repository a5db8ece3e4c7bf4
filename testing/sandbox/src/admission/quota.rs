//! Quotas on the number of objects. Resource requests of pods are not counted: no containers run.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::error::{About, ApiError};
use crate::request::Call;
use crate::resource::Resource;
use crate::server::Server;
use crate::store::{Object, Store, text};

/// Where quotas are stored.
pub(crate) const STORAGE: &str = "/resourcequotas";

/// Kinds that a quota may name by their plural alone.
const PLAIN: [&str; 7] = [
    "pods",
    "services",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
];

/// The storage of the kind whose objects an entry of a quota counts; `None` for other sorts of entries.
fn counted(entry: &str) -> Option<String> {
    match entry.strip_prefix("count/") {
        Some(kind) => {
            let (plural, group) = kind.split_once('.').unwrap_or((kind, ""));
            Some(format!("{group}/{plural}"))
        }
        None => PLAIN.contains(&entry).then(|| format!("/{entry}")),
    }
}

/// The entries of a quota that count objects of this kind, each with its limit.
fn limits<'a>(quota: &'a Object, storage: &str) -> Vec<(&'a str, &'a str)> {
    let hard = quota.value().pointer("/spec/hard").and_then(Value::as_object);
    hard.into_iter()
        .flatten()
        .filter(|(entry, _)| counted(entry).as_deref() == Some(storage))
        .filter_map(|(entry, limit)| Some((entry.as_str(), limit.as_str()?)))
        .collect()
}

fn count(store: &Store, storage: &str, namespace: &str) -> usize {
    store.list(storage, Some(namespace)).objects.len()
}

/// Rejects an object that exceeds a quota.
pub(crate) fn check(server: &Server, call: &Call, object: &Value) -> Result<(), ApiError> {
    let (resource, namespace): (&Resource, String) = (&call.resource, call.namespace());
    for (_, quota) in server.store.list(STORAGE, Some(&namespace)).objects {
        let used = count(&server.store, &resource.storage, &namespace);
        let exceeded: BTreeMap<&str, &str> = limits(&quota, &resource.storage)
            .into_iter()
            .filter(|(_, limit)| limit.parse::<usize>().is_ok_and(|limit| used >= limit))
            .collect();
        if exceeded.is_empty() {
            continue;
        }
        let list = |value: &dyn Fn(&str) -> String| {
            let each = exceeded
                .iter()
                .map(|(entry, limit)| format!("{entry}={}", value(limit)));
            each.collect::<Vec<_>>().join(",")
        };
        let about = About {
            group: &resource.group,
            kind: &resource.plural,
            name: text(object, "/metadata/name"),
        };
        let why = format!(
            "exceeded quota: {}, requested: {}, used: {}, limited: {}",
            quota.name(),
            list(&|_| "1".to_owned()),
            list(&|_| used.to_string()),
            list(&str::to_owned),
        );
        return Err(ApiError::forbidden(about, &why));
    }
    Ok(())
}

/// The current status of a quota.
pub(crate) fn status(store: &Store, quota: &Object) -> Value {
    let hard = quota
        .value()
        .pointer("/spec/hard")
        .cloned()
        .unwrap_or_else(|| json!({}));
    let used: Map<String, Value> = hard
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(entry, _)| {
            let used = count(store, &counted(entry)?, quota.namespace());
            Some((entry.clone(), json!(used.to_string())))
        })
        .collect();
    json!({"hard": hard, "used": used})
}
