//! Damages projects while the operator is down, and waits for the repair.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use futures::TryStreamExt as _;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::runtime::watcher::{Config, Event, watcher};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use crate::floor::pattern;
use crate::setup::{BenchSetup, name};

/// A component, and the label of its objects.
struct Component {
    name: &'static str,
    label: &'static str,
}

/// The component whose Service is deleted.
const DELETED: Component = Component {
    name: "meta",
    label: "metadata",
};
/// The component whose Deployment is changed.
const CHANGED: Component = Component {
    name: "auth",
    label: "authentication",
};
/// The number of concurrent writes, as many as the operator makes in one namespace.
const TOGETHER: usize = 8;
/// The replicas of a damaged Deployment, instead of one.
const HARMED: i32 = 3;

impl Component {
    fn child(&self, project: &str) -> String {
        format!("{project}-{}", self.name)
    }
}

/// When the first and the last project was repaired.
pub(crate) struct Repaired {
    pub(crate) first: Duration,
    pub(crate) last: Duration,
}

/// Deletes a Service and changes a Deployment of each of these projects, and waits until the new pods are available, so
/// that their creation is not measured.
pub(crate) async fn harm(setup: &BenchSetup, projects: &[usize]) {
    let harm = json!({ "spec": { "replicas": HARMED } });
    setup
        .each(projects.iter().copied(), TOGETHER, async |project| {
            let service = DELETED.child(&project);
            let deleted = setup.services.delete(&service, &DeleteParams::default()).await;
            deleted.expect("a Service");
            let deployment = CHANGED.child(&project);
            let (params, patch) = (PatchParams::default(), Patch::Merge(&harm));
            let changed = setup.deployments.patch(&deployment, &params, &patch).await;
            changed.expect("a Deployment");
        })
        .await;
    let has_followed = |found: &Deployment| {
        let status = found.status.as_ref();
        status.and_then(|status| status.available_replicas) == Some(HARMED)
    };
    until(
        &setup.deployments,
        &CHANGED,
        projects,
        Instant::now(),
        has_followed,
    )
    .await;
}

/// Waits until all of these projects are repaired. It uses a watch, because reading each of a thousand objects would take
/// longer than the repair.
pub(crate) async fn repaired(setup: &BenchSetup, projects: &[usize], start: Instant) -> Repaired {
    let services = until(&setup.services, &DELETED, projects, start, |_: &Service| true);
    let deployments = until(
        &setup.deployments,
        &CHANGED,
        projects,
        start,
        |found: &Deployment| found.spec.as_ref().and_then(|spec| spec.replicas) == Some(1),
    );
    let (services, deployments) = tokio::join!(services, deployments);
    Repaired {
        first: services.first.max(deployments.first),
        last: services.last.max(deployments.last),
    }
}

async fn until<K>(
    api: &Api<K>,
    component: &Component,
    projects: &[usize],
    start: Instant,
    is_mended: impl Fn(&K) -> bool,
) -> Repaired
where
    K: kube::Resource + Clone + std::fmt::Debug + Send + serde::de::DeserializeOwned + 'static,
{
    let child = |number: &usize| component.child(&name(*number));
    let mut harmed: HashSet<String> = projects.iter().map(child).collect();
    let labels = format!("app.kubernetes.io/component={}", component.label);
    let mut news = Box::pin(watcher(api.clone(), Config::default().labels(&labels)));
    let mut first = None;
    while !harmed.is_empty() {
        let event = news.try_next().await.expect("a watch").expect("an endless watch");
        let (Event::InitApply(object) | Event::Apply(object)) = event else {
            continue;
        };
        if is_mended(&object) && harmed.remove(&object.name_any()) {
            first.get_or_insert_with(|| start.elapsed());
        }
    }
    Repaired {
        first: first.unwrap_or_default(),
        last: start.elapsed(),
    }
}

/// The time that a plain client needs for the same writes with the same concurrency. No operator can repair faster.
pub(crate) async fn floor(setup: &BenchSetup, projects: &[usize]) -> Duration {
    let mut wanted = HashMap::new();
    for number in projects {
        let project = name(*number);
        let service = setup.services.get(&DELETED.child(&project)).await;
        let deployment = setup.deployments.get(&CHANGED.child(&project)).await;
        let both = (
            pattern(&service.expect("a Service")),
            pattern(&deployment.expect("a Deployment")),
        );
        wanted.insert(project, both);
    }
    harm(setup, projects).await;
    let params = PatchParams::apply("floor").force();
    let start = Instant::now();
    setup
        .each(projects.iter().copied(), TOGETHER, async |project| {
            let (service, deployment) = &wanted[&project];
            let name = DELETED.child(&project);
            let written = setup.services.patch(&name, &params, &Patch::Apply(service)).await;
            written.expect("a Service");
            let name = CHANGED.child(&project);
            let written = setup
                .deployments
                .patch(&name, &params, &Patch::Apply(deployment))
                .await;
            written.expect("a Deployment");
        })
        .await;
    start.elapsed()
}
