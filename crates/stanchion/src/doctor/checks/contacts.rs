//! Checks of the connections of `--connect`. Without it, there are none.

use super::{Fault, Outcome};
use crate::doctor::connect::{ConnectFailure, Contact, What};
use crate::doctor::snapshot::Snapshot;

/// The explanation for a cluster-internal name that cannot be resolved here.
const INSIDE: &str = "a name that only the cluster knows cannot be dialled from here: run doctor in a pod, or dial it with kubectl port-forward";

fn failed(snapshot: &Snapshot, what: What, words: &str, remedy: &str) -> Vec<Fault> {
    let faults = snapshot.contacts.iter().filter(|contact| contact.what == what);
    faults
        .filter_map(|contact| match &contact.result {
            Err(ConnectFailure::Failed(why)) => Some(Fault {
                subject: contact.subject.clone(),
                message: format!("{words} does not answer from here: {why}"),
                remedy: if why.starts_with("HostNotFound") {
                    INSIDE.to_owned()
                } else {
                    remedy.to_owned()
                },
            }),
            _ => None,
        })
        .collect()
}

#[allow(clippy::unnecessary_wraps, reason = "as every check")]
pub(super) fn database(snapshot: &Snapshot) -> Outcome {
    Ok(failed(
        snapshot,
        What::Database,
        "its database",
        "compare with `stanchion status`, which says whether the operator reaches it; then check the host, the port, TLS and \
         the Secret that the object names",
    ))
}

#[allow(clippy::unnecessary_wraps, reason = "as every check")]
pub(super) fn bucket(snapshot: &Snapshot) -> Outcome {
    Ok(failed(
        snapshot,
        What::Bucket,
        "its bucket",
        "compare with `stanchion status`, which says whether the operator reaches it; then check the endpoint, the region and \
         the key in the Secret that the object names",
    ))
}

#[allow(clippy::unnecessary_wraps, reason = "as every check")]
pub(super) fn secret(snapshot: &Snapshot) -> Outcome {
    let unread = |contact: &Contact| match &contact.result {
        Err(ConnectFailure::Unread(why)) => Some(Fault {
            subject: contact.subject.clone(),
            message: format!("cannot be dialled: {why}"),
            remedy: format!("kubectl -n {} get secrets", contact.namespace),
        }),
        _ => None,
    };
    Ok(snapshot.contacts.iter().filter_map(unread).collect())
}
