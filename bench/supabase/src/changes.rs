//! How soon a change of a project is a change of its children.

use std::path::Path;
use std::time::{Duration, Instant};

use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use stanchion_bench_bed::row;
use tokio::time::sleep;

use crate::stage::{Stage, name};

/// How many changes are timed, one after the other.
const CHANGES: usize = 20;
/// How often it is looked whether a change has arrived.
const GLANCE: Duration = Duration::from_millis(4);

/// From the answer to a change of the spec to the Deployment that has it.
pub(crate) async fn measure(stage: &Stage, projects: usize) -> bool {
    let mut took = Vec::with_capacity(CHANGES);
    for change in 0..CHANGES {
        let project = name(change * 7 % projects);
        let value = format!("change-{change}");
        let patch = json!({ "spec": { "auth": { "extraEnv": [{ "name": "BENCH", "value": value }] } } });
        stage
            .projects
            .patch(&project, &PatchParams::default(), &Patch::Merge(&patch))
            .await
            .expect("a change that is let in");
        let start = Instant::now();
        let deployment = format!("{project}-auth");
        while !has(stage, &deployment, &value).await {
            sleep(GLANCE).await;
        }
        took.push(start.elapsed());
    }
    // What comes next starts from projects that are in order again.
    stage.running(projects).await;
    took.sort();
    let at = |share: usize| took[(CHANGES * share / 100).min(CHANGES - 1)].as_millis();
    row(
        "change to Deployment, p50, p99",
        &format!("{} ms, {} ms", at(50), at(99)),
    );
    true
}

async fn has(stage: &Stage, deployment: &str, value: &str) -> bool {
    let found = stage.deployments.get(deployment).await.expect("a Deployment");
    let spec = found
        .spec
        .and_then(|spec| spec.template.spec)
        .expect("a Pod's spec");
    let container = spec.containers.first().expect("a container");
    let variables = container.env.iter().flatten();
    variables
        .into_iter()
        .any(|variable| variable.value.as_deref() == Some(value))
}

/// From a deletion until the project and its children are gone.
pub(crate) async fn deletion(stage: &Stage, binary: &Path) -> bool {
    let _operator = stage.operator(binary);
    let (project, start) = (name(0), Instant::now());
    stage
        .projects
        .delete(&project, &DeleteParams::default())
        .await
        .expect("a project");
    while stage
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
        while stage
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
