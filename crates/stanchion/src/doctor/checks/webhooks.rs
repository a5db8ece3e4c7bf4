//! Checks of the webhook configurations, and of the Service behind them.

use serde_json::Value;

use super::{Fault, Outcome, installations, items, need, subject, text};
use crate::doctor::snapshot::Snapshot;
use crate::run::registration_name;

pub(super) fn missing(snapshot: &Snapshot) -> Outcome {
    let webhooks = need("webhook configurations", &snapshot.webhooks)?;
    let mut faults = Vec::new();
    for installation in installations(snapshot)? {
        let name = registration_name(installation.namespace);
        let registered = webhooks
            .iter()
            .any(|webhook| text(webhook, "/metadata/name") == name);
        // Every controller has webhooks.
        if installation.has_webhooks() && !registered && installation.number("/status/availableReplicas") > 0
        {
            faults.push(Fault {
                subject: installation.subject(),
                message: "has registered no webhooks: mistakes are reported in the status only".to_owned(),
                remedy: format!(
                    "kubectl -n {} logs deployment/{} | grep -i webhook",
                    installation.namespace, installation.name
                ),
            });
        }
    }
    Ok(faults)
}

/// The Services of a configuration's webhooks.
fn services(configuration: &Value) -> impl Iterator<Item = (&str, &str)> {
    items(configuration, "/webhooks").filter_map(|webhook| {
        let service = webhook.pointer("/clientConfig/service")?;
        Some((text(service, "/namespace"), text(service, "/name")))
    })
}

pub(super) fn left_behind(snapshot: &Snapshot) -> Outcome {
    let webhooks = need("webhook configurations", &snapshot.webhooks)?;
    let installations = installations(snapshot)?;
    let orphans = webhooks.iter().filter(|webhook| {
        !installations
            .iter()
            .any(|installation| registration_name(installation.namespace) == text(webhook, "/metadata/name"))
    });
    Ok(orphans
        .map(|webhook| Fault {
            subject: subject(webhook),
            message:
                "belongs to an operator that no longer exists; every write waits until the webhook times out"
                    .to_owned(),
            remedy: format!(
                "kubectl delete {} {}",
                text(webhook, "/kind").to_lowercase(),
                text(webhook, "/metadata/name")
            ),
        })
        .collect())
}

pub(super) fn service(snapshot: &Snapshot) -> Outcome {
    let webhooks = need("webhook configurations", &snapshot.webhooks)?;
    let there = need("services", &snapshot.services)?;
    let slices = need("endpointslices", &snapshot.endpoint_slices)?;
    let mut faults = Vec::new();
    for webhook in webhooks {
        let Some((namespace, name)) = services(webhook).next() else {
            continue;
        };
        let is = |object: &Value, pointer: &str| {
            text(object, pointer) == name && text(object, "/metadata/namespace") == namespace
        };
        let exists = there.iter().any(|service| is(service, "/metadata/name"));
        let answered = slices
            .iter()
            .filter(|slice| is(slice, "/metadata/labels/kubernetes.io~1service-name"))
            .flat_map(|slice| items(slice, "/endpoints"))
            .any(|endpoint| endpoint.pointer("/conditions/ready") != Some(&Value::Bool(false)));
        let message = match (exists, answered) {
            (false, _) => format!("names the Service {namespace}/{name}, which does not exist"),
            (true, false) => format!("names the Service {namespace}/{name}, which no ready pod is behind"),
            (true, true) => continue,
        };
        faults.push(Fault {
            subject: subject(webhook),
            message,
            remedy: format!("kubectl -n {namespace} get service/{name} endpointslices pods"),
        });
    }
    Ok(faults)
}

pub(super) fn blocks(snapshot: &Snapshot) -> Outcome {
    let webhooks = need("webhook configurations", &snapshot.webhooks)?;
    let blocking = webhooks
        .iter()
        .filter(|webhook| items(webhook, "/webhooks").any(|webhook| webhook["failurePolicy"] == "Fail"));
    Ok(blocking
        .map(|webhook| Fault {
            subject: subject(webhook),
            message: "has failurePolicy Fail: these objects cannot be written while the operator is down"
                .to_owned(),
            remedy: format!(
                "kubectl delete {} {}; the operator registers it again as it should be",
                text(webhook, "/kind").to_lowercase(),
                text(webhook, "/metadata/name")
            ),
        })
        .collect())
}
