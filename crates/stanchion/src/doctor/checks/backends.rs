//! Checks of the operators that a `GitlabInstance` needs.

use serde_json::Value;

use super::{Fault, Outcome, condition, need, subject, text};
use crate::cluster::printable;
use crate::doctor::snapshot::Snapshot;

/// The resources that Flux must serve.
const FLUX: [(&str, &str); 2] = [
    ("helm.toolkit.fluxcd.io", "helmreleases"),
    ("source.toolkit.fluxcd.io", "helmrepositories"),
];
/// The operators of the managed backends: their API groups and names.
const OPERATORS: [(&str, &str); 3] = [
    ("pgv2.percona.com", "Percona Operator for PostgreSQL"),
    ("redis.redis.opstreelabs.in", "redis-operator of Opstree"),
    ("elasticsearch.k8s.elastic.co", "Elastic Cloud on Kubernetes"),
];

fn instances(snapshot: &Snapshot) -> Result<Vec<&Value>, String> {
    let objects = need("objects", &snapshot.objects)?;
    Ok(objects
        .iter()
        .filter(|object| object["kind"] == "GitlabInstance")
        .collect())
}

pub(super) fn flux_missing(snapshot: &Snapshot) -> Outcome {
    let served = need("the served groups", &snapshot.served)?;
    let needed = !instances(snapshot)?.is_empty();
    let missing = FLUX.iter().filter(|(group, resource)| {
        !served
            .iter()
            .any(|served| served.group == *group && served.resources.iter().any(|name| name == resource))
    });
    Ok(missing
        .filter(|_| needed)
        .map(|(group, resource)| Fault {
            subject: format!("CustomResourceDefinition {resource}.{group}"),
            message: "is not served, and there are GitlabInstance objects, which Flux installs".to_owned(),
            remedy: "flux install --components=source-controller,helm-controller".to_owned(),
        })
        .collect())
}

pub(super) fn flux_unavailable(snapshot: &Snapshot) -> Outcome {
    if instances(snapshot)?.is_empty() {
        return Ok(Vec::new());
    }
    let deployments = need("deployments of Flux", &snapshot.flux)?;
    let away = deployments.iter().filter(|deployment| {
        ["helm-controller", "source-controller"].contains(&text(deployment, "/metadata/name"))
            && deployment
                .pointer("/status/availableReplicas")
                .and_then(Value::as_i64)
                .unwrap_or_default()
                == 0
    });
    Ok(away
        .map(|deployment| Fault {
            subject: subject(deployment),
            message: "has no available replica; releases of GitLab are not installed or upgraded".to_owned(),
            remedy: format!(
                "kubectl -n {} describe deployment {}",
                text(deployment, "/metadata/namespace"),
                text(deployment, "/metadata/name")
            ),
        })
        .collect())
}

/// The status of an instance names the missing kind; this check adds the operator that provides it.
pub(super) fn operator_missing(snapshot: &Snapshot) -> Outcome {
    let served = need("the served groups", &snapshot.served)?;
    let mut faults = Vec::new();
    for instance in instances(snapshot)? {
        let Some(ready) = condition(instance, "Ready").filter(|ready| ready["status"] != "True") else {
            continue;
        };
        let message = text(ready, "/message");
        for (group, name) in OPERATORS {
            if message.contains(group) && !served.iter().any(|served| served.group == group) {
                faults.push(Fault {
                    subject: subject(instance),
                    message: format!("needs the {name}, which is not installed: {}", printable(message)),
                    remedy: format!("install the {name}, or name a server of your own in the spec"),
                });
            }
        }
    }
    Ok(faults)
}
