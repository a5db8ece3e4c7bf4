//! Checks before the start: the cluster answers, and it serves the kinds to reconcile.
//!
//! Without them, a wrong kubeconfig or a missing CRD would appear only as a watch that keeps failing in the log of a
//! pod that never becomes ready.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::version::Info;
use kube::Client;
use stanchion_kernel::driver::Settings;
use stanchion_kernel::problem::chain;
use thiserror::Error;
use tokio::time::{Instant, sleep, timeout};
use tracing::warn;

use crate::controllers::Kind;

/// Timeout of the cluster's answer.
const REACHABLE_WITHIN: Duration = Duration::from_secs(5);
/// How long a pod waits for an unavailable API server. No person waits for it, and each time that it exited instead,
/// Kubernetes would wait longer before it restarts it.
const IN_POD: Duration = Duration::from_secs(25);
/// How long a kind may be missing: a CRD that was just installed is not served yet.
const SERVED_WITHIN: Duration = Duration::from_secs(3);
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// Why the operator cannot start here.
#[derive(Debug, Error)]
pub(crate) enum PreflightError {
    /// No answer, or not the answer of a cluster.
    #[error(
        "cannot reach the cluster at {url}: {why}; check KUBECONFIG, or the service account inside a cluster"
    )]
    Unreachable {
        /// The cluster's address.
        url: String,
        /// The cause.
        why: String,
    },
    /// A kind is missing.
    #[error("the cluster does not serve {kinds}; install the CRDs: stanchion crds | kubectl apply -f -")]
    Missing {
        /// `postgresusers.db.example.com/v1alpha1`, …
        kinds: String,
    },
}

/// The relevant properties of the cluster.
#[derive(Clone, Debug)]
pub(crate) struct ClusterInfo {
    /// For the log.
    pub(crate) version: String,
    /// Whether the cluster supports streaming lists.
    pub(crate) streaming_lists: bool,
}

/// Checks the cluster. It needs no permissions: every user may read the version and the discovery documents.
pub(crate) async fn check(client: &Client, url: &str, kinds: &[Kind]) -> Result<ClusterInfo, PreflightError> {
    let unreachable = |why: String| PreflightError::Unreachable {
        url: url.to_owned(),
        why,
    };
    let deadline = Instant::now() + if is_in_pod() { IN_POD } else { Duration::ZERO };
    let version = loop {
        match version(client).await {
            Ok(version) => break version,
            Err(why) if Instant::now() >= deadline => return Err(unreachable(why)),
            Err(why) => {
                warn!(why, "waiting for the cluster");
                sleep(LOOK_AGAIN).await;
            }
        }
    };
    let deadline = Instant::now() + SERVED_WITHIN;
    loop {
        let missing = missing(client, kinds)
            .await
            .map_err(|error| unreachable(said(&error)))?;
        if missing.is_empty() {
            break;
        }
        if Instant::now() >= deadline {
            return Err(PreflightError::Missing {
                kinds: missing.join(", "),
            });
        }
        sleep(LOOK_AGAIN).await;
    }
    Ok(ClusterInfo {
        streaming_lists: Settings::streams_lists(&version),
        version: version.git_version,
    })
}

async fn version(client: &Client) -> Result<Info, String> {
    match timeout(REACHABLE_WITHIN, client.apiserver_version()).await {
        Ok(Ok(version)) => Ok(version),
        Ok(Err(error)) => Err(said(&error)),
        Err(_) => Err(format!("no answer within {} seconds", REACHABLE_WITHIN.as_secs())),
    }
}

/// Kubernetes sets the variable in every container.
fn is_in_pod() -> bool {
    std::env::var_os("KUBERNETES_SERVICE_HOST").is_some()
}

/// The kinds that are not served, or not with their status subresource.
async fn missing(client: &Client, kinds: &[Kind]) -> Result<Vec<String>, kube::Error> {
    let mut by_version: BTreeMap<&str, Vec<&Kind>> = BTreeMap::new();
    for kind in kinds {
        let version = &kind.resource.api_version;
        by_version.entry(version).or_default().push(kind);
    }
    let mut missing = Vec::new();
    for (group_version, kinds) in by_version {
        let served: Vec<String> = match client.list_api_group_resources(group_version).await {
            Ok(list) => list.resources.into_iter().map(|resource| resource.name).collect(),
            // The response for a missing group is not a Status, so only its code counts.
            Err(kube::Error::Api(status)) if status.code == 404 => Vec::new(),
            Err(error) => return Err(error),
        };
        let is_served = |name: &str| served.iter().any(|served| served == name);
        let is_missing = |kind: &&Kind| {
            let plural = &kind.resource.plural;
            !is_served(plural) || (kind.has_status && !is_served(&format!("{plural}/status")))
        };
        let named = |kind: &Kind| format!("{}.{group_version}", kind.resource.plural);
        missing.extend(kinds.into_iter().filter(is_missing).map(named));
    }
    Ok(missing)
}

/// The server's message, if it has one.
fn said(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => format!("{} {}", status.code, status.message),
        _ => chain(error),
    }
}
