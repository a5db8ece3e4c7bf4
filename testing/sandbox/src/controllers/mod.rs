//! The few controllers that a cluster needs. Each reads the feed of changes and acts through the same handlers as every
//! client.

mod actor;
mod bootstrap;
mod claims;
mod crds;
mod garbage;
mod namespaces;
mod quotas;
mod roles;
mod workloads;

use std::sync::Arc;

use tokio::task::JoinSet;

pub(crate) use workloads::{Logs, Mapping, Workloads};

use crate::server::Server;
use actor::Actor;

/// Creates the initial objects and starts the controllers.
pub(crate) fn start(server: &Arc<Server>, workloads: Option<Workloads>, tasks: &mut JoinSet<()>) {
    bootstrap::objects(server, workloads.is_some());
    // CRDs that were loaded from disk are served from the first request on.
    crds::serve_all(server);
    // As after a start of the original, no client can resume from before it.
    server.store.compact();
    let actor = |name: &str| Actor::new(server, name);
    tasks.spawn(crds::run(actor("apiextensions-controller")));
    tasks.spawn(namespaces::run(actor("namespace-controller")));
    tasks.spawn(garbage::run(actor("generic-garbage-collector")));
    tasks.spawn(claims::run(actor("pvc-protection-controller")));
    tasks.spawn(roles::run(actor("clusterrole-aggregation-controller")));
    tasks.spawn(quotas::run(actor("resourcequota-controller")));
    if let Some(workloads) = workloads {
        workloads::start(server, workloads, tasks);
    }
}
