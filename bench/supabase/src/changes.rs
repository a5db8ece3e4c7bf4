//! Measures how soon a change of a project changes its children.

use std::path::Path;
use std::pin::pin;
use std::time::{Duration, Instant};

use futures::{Stream, StreamExt as _};
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, WatchEvent, WatchParams};
use serde_json::json;
use stanchion_bench_env::row;
use tokio::time::sleep;

use crate::setup::{BenchSetup, name};

/// Number of changes that are timed, one after the other.
const CHANGES: usize = 20;
/// How often the deletion is checked.
const GLANCE: Duration = Duration::from_millis(4);

/// From the response to a change of the spec until a watch reports the changed Deployment. Each change finds an idle
/// cluster: the rollout of the previous change is over.
pub(crate) async fn measure(setup: &BenchSetup, projects: usize) -> bool {
    let mut took = Vec::with_capacity(CHANGES);
    for change in 0..CHANGES {
        let project = name(change * 7 % projects);
        let value = format!("change-{change}");
        let patch = json!({ "spec": { "auth": { "extraEnv": [{ "name": "BENCH", "value": value }] } } });
        let deployment = format!("{project}-auth");
        let mut news = pin!(watch(setup, &deployment).await);
        setup
            .projects
            .patch(&project, &PatchParams::default(), &Patch::Merge(&patch))
            .await
            .expect("a change that is let in");
        let start = Instant::now();
        while !has(&news.next().await.expect("an open watch"), &value) {}
        took.push(start.elapsed());
        setup.settled(&project).await;
    }
    took.sort();
    let at = |share: usize| took[(CHANGES * share / 100).min(CHANGES - 1)].as_millis();
    row(
        "change to Deployment, p50, p99",
        &format!("{} ms, {} ms", at(50), at(99)),
    );
    true
}

/// The changes of a Deployment from now on.
async fn watch(setup: &BenchSetup, deployment: &str) -> impl Stream<Item = Deployment> {
    let named = format!("metadata.name={deployment}");
    // From now on, and not from its last change: that can be too old for the server's history.
    let found = setup
        .deployments
        .list(&ListParams::default().fields(&named))
        .await;
    let version = found
        .expect("a list")
        .metadata
        .resource_version
        .expect("a version");
    let params = WatchParams::default().fields(&named);
    let events = setup.deployments.watch(&params, &version).await;
    events
        .expect("a watch")
        .filter_map(async |event| match event.expect("an event") {
            WatchEvent::Modified(deployment) => Some(deployment),
            _ => None,
        })
}

fn has(deployment: &Deployment, value: &str) -> bool {
    let spec = deployment
        .spec
        .as_ref()
        .and_then(|spec| spec.template.spec.as_ref());
    let container = spec.and_then(|spec| spec.containers.first());
    let variables = container.expect("a container").env.iter().flatten();
    variables
        .into_iter()
        .any(|variable| variable.value.as_deref() == Some(value))
}

/// From a deletion until the project and its children are gone.
pub(crate) async fn deletion(setup: &BenchSetup, binary: &Path) -> bool {
    let _operator = setup.operator(binary);
    let (project, start) = (name(0), Instant::now());
    setup
        .projects
        .delete(&project, &DeleteParams::default())
        .await
        .expect("a project");
    while setup
        .projects
        .get_opt(&project)
        .await
        .expect("an answer")
        .is_some()
    {
        sleep(GLANCE).await;
    }
    let gone = start.elapsed();
    for component in [
        "kong",
        "auth",
        "postgrest",
        "realtime",
        "storage",
        "meta",
        "studio",
    ] {
        let child = format!("{project}-{component}");
        while setup
            .deployments
            .get_opt(&child)
            .await
            .expect("an answer")
            .is_some()
        {
            sleep(GLANCE).await;
        }
    }
    row(
        "delete: gone, children gone",
        &format!("{} ms, {} ms", gone.as_millis(), start.elapsed().as_millis()),
    );
    true
}
