//! Checks of the operator's Deployment, pods and Lease.

use jiff::Timestamp;
use serde_json::Value;

use super::{Fault, Outcome, installations, items, need, text};
use crate::cluster::printable;
use crate::doctor::snapshot::{Installation, Snapshot};
use crate::run;

/// A Lease that was not renewed for this long has no holder, whatever it contains. The leader renews it every few seconds with the time
/// of its node, and the clock of this machine may differ by minutes.
const RENEWED_WITHIN: i64 = 300;

pub(super) fn missing(snapshot: &Snapshot) -> Outcome {
    let none = installations(snapshot)?.is_empty();
    Ok(none
        .then(|| Fault {
            subject: "operator".to_owned(),
            message: "no Deployment has the label app.kubernetes.io/part-of=stanchion or app.kubernetes.io/name=stanchion; nothing is reconciled"
                .to_owned(),
            remedy: "helm install stanchion charts/stanchion -n stanchion-system --create-namespace"
                .to_owned(),
        })
        .into_iter()
        .collect())
}

/// One fault for each installation that `say` finds fault with.
fn each(snapshot: &Snapshot, say: impl Fn(&Installation<'_>) -> Option<(String, String)>) -> Outcome {
    let all = installations(snapshot)?;
    let faults = all.iter().filter_map(|installation| {
        let (message, remedy) = say(installation)?;
        Some(Fault {
            subject: installation.subject(),
            message,
            remedy,
        })
    });
    Ok(faults.collect())
}

pub(super) fn unavailable(snapshot: &Snapshot) -> Outcome {
    each(snapshot, |installation| {
        let (wanted, available) = (
            installation.number("/spec/replicas"),
            installation.number("/status/availableReplicas"),
        );
        let Installation { namespace, name, .. } = installation;
        match (wanted, available) {
            (0, _) => Some((
                "is scaled to zero; nothing is reconciled".to_owned(),
                format!("kubectl -n {namespace} scale deployment {name} --replicas=2"),
            )),
            (_, 0) => Some((
                "has no available replica; nothing is reconciled".to_owned(),
                format!(
                    "kubectl -n {namespace} describe pods -l {}",
                    installation.selector()
                ),
            )),
            _ => None,
        }
    })
}

pub(super) fn degraded(snapshot: &Snapshot) -> Outcome {
    each(snapshot, |installation| {
        let (wanted, available) = (
            installation.number("/spec/replicas"),
            installation.number("/status/availableReplicas"),
        );
        let namespace = installation.namespace;
        (available > 0 && available < wanted).then(|| {
            (
                format!(
                    "only {available} of {wanted} replicas are available; no replica can take over if the leader ends"
                ),
                format!("kubectl -n {namespace} get pods -l {}", installation.selector()),
            )
        })
    })
}

pub(super) fn overlap(snapshot: &Snapshot) -> Outcome {
    let all = installations(snapshot)?;
    let mut faults = Vec::new();
    for (at, one) in all.iter().enumerate() {
        for other in all.iter().skip(at + 1) {
            let same_controller = crate::controllers::ALL
                .iter()
                .any(|row| one.runs(row.name) && other.runs(row.name));
            let (ours, theirs) = (one.namespaces(), other.namespaces());
            let same_namespace =
                ours.is_empty() || theirs.is_empty() || ours.iter().any(|name| theirs.contains(name));
            if same_controller && same_namespace {
                faults.push(Fault {
                    subject: one.subject(),
                    message: format!(
                        "and {} reconcile the same objects, each against the other",
                        other.subject()
                    ),
                    remedy: "give each its own --namespace or --controllers, or uninstall one".to_owned(),
                });
            }
        }
    }
    Ok(faults)
}

/// The status of the operator's container in each pod.
fn containers(snapshot: &Snapshot) -> Result<Vec<(&Value, &Value)>, String> {
    let pods = need("pods", &snapshot.pods)?;
    let all = pods.iter().flat_map(|pod| {
        let statuses = items(pod, "/status/containerStatuses");
        statuses
            .filter(|status| status["name"] == "operator")
            .map(move |status| (pod, status))
    });
    Ok(all.collect())
}

fn of_pod(pod: &Value, message: String, remedy: &str) -> Fault {
    let (namespace, name) = (text(pod, "/metadata/namespace"), text(pod, "/metadata/name"));
    Fault {
        subject: format!("Pod {namespace}/{name}"),
        message,
        remedy: remedy.replace("POD", &format!("-n {namespace} {name}")),
    }
}

pub(super) fn image(snapshot: &Snapshot) -> Outcome {
    let refused = [
        "ImagePullBackOff",
        "ErrImagePull",
        "InvalidImageName",
        "ErrImageNeverPull",
    ];
    let all = containers(snapshot)?.into_iter();
    let faults = all.filter(|(_, status)| refused.contains(&text(status, "/state/waiting/reason")));
    Ok(faults
        .map(|(pod, status)| {
            let message = format!(
                "cannot pull {}: {}",
                printable(text(status, "/image")),
                printable(text(status, "/state/waiting/message"))
            );
            of_pod(
                pod,
                message,
                "kubectl describe pod POD; then set image.repository, image.tag or imagePullSecrets",
            )
        })
        .collect())
}

pub(super) fn crashes(snapshot: &Snapshot) -> Outcome {
    let all = containers(snapshot)?.into_iter();
    let faults = all.filter(|(_, status)| text(status, "/state/waiting/reason") == "CrashLoopBackOff");
    Ok(faults
        .map(|(pod, status)| {
            let restarts = status["restartCount"].as_i64().unwrap_or_default();
            of_pod(
                pod,
                format!("restarts repeatedly, {restarts} times so far"),
                "kubectl logs POD --previous",
            )
        })
        .collect())
}

pub(super) fn out_of_memory(snapshot: &Snapshot) -> Outcome {
    let all = containers(snapshot)?.into_iter();
    let faults = all.filter(|(_, status)| text(status, "/lastState/terminated/reason") == "OOMKilled");
    Ok(faults
        .map(|(pod, _)| {
            of_pod(
                pod,
                "ran out of memory".to_owned(),
                "helm upgrade … --set resources.limits.memory=512Mi (kubectl describe pod POD)",
            )
        })
        .collect())
}

pub(super) fn version(snapshot: &Snapshot) -> Outcome {
    let ours = env!("CARGO_PKG_VERSION");
    each(snapshot, |installation| {
        let version = installation.version()?;
        (version != ours).then(|| {
            (
                format!("runs version {}, and this program is {ours}", printable(version)),
                "use the program of the same version: its fields and RBAC rules may differ".to_owned(),
            )
        })
    })
}

pub(super) fn watched_namespace(snapshot: &Snapshot) -> Outcome {
    let namespaces = need("namespaces", &snapshot.namespaces)?;
    let there: Vec<&str> = namespaces
        .iter()
        .map(|namespace| text(namespace, "/metadata/name"))
        .collect();
    each(snapshot, |installation| {
        let missing: Vec<&str> = installation
            .namespaces()
            .into_iter()
            .filter(|name| !there.contains(name))
            .collect();
        let first = missing.first()?;
        Some((
            format!("watches namespaces that do not exist: {}", missing.join(", ")),
            format!("kubectl create namespace {first}, or take it out of --namespace"),
        ))
    })
}

fn lease<'a>(snapshot: &'a Snapshot, installation: &Installation<'_>) -> Result<Option<&'a Value>, String> {
    let leases = need("leases", &snapshot.leases)?;
    Ok(leases.iter().find(|lease| {
        text(lease, "/metadata/name") == run::LEASE
            && text(lease, "/metadata/namespace") == installation.namespace
    }))
}

pub(super) fn lease_missing(snapshot: &Snapshot) -> Outcome {
    need("leases", &snapshot.leases)?;
    each(snapshot, |installation| {
        let available = installation.number("/status/availableReplicas") > 0;
        let missing = matches!(lease(snapshot, installation), Ok(None));
        (available && missing && installation.elects_a_leader()).then(|| {
            (
                "is available and has no Lease: no replica leads".to_owned(),
                format!(
                    "kubectl -n {} logs deployment/{}; it may need the RBAC rules of `stanchion rbac`",
                    installation.namespace, installation.name
                ),
            )
        })
    })
}

pub(super) fn lease_expired(snapshot: &Snapshot) -> Outcome {
    need("leases", &snapshot.leases)?;
    each(snapshot, |installation| {
        let lease = lease(snapshot, installation).ok()??;
        if !installation.elects_a_leader() || installation.number("/status/availableReplicas") == 0 {
            return None;
        }
        let renewed: Option<Timestamp> = text(lease, "/spec/renewTime").parse().ok();
        let late = renewed.map(|renewed| snapshot.now.as_second() - renewed.as_second());
        let holder = text(lease, "/spec/holderIdentity");
        let message = match late {
            _ if holder.is_empty() => "the Lease has no holder: no replica is the leader".to_owned(),
            Some(late) if late > RENEWED_WITHIN => {
                format!(
                    "{} has not renewed the Lease for {late} seconds: no replica leads",
                    printable(holder)
                )
            }
            _ => return None,
        };
        let remedy = format!(
            "kubectl -n {} logs deployment/{}",
            installation.namespace, installation.name
        );
        Some((message, remedy))
    })
}
