//! Simulates Flux: the status that its helm-controller and its source-controller report for a release and a repository.

use futures::FutureExt as _;
use kube::ResourceExt as _;
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::Part;
use super::scene::{Scene, condition, is_said, now, number, text};

pub(super) const RELEASE: Part = Part {
    group: "helm.toolkit.fluxcd.io",
    version: "v2",
    kind: "HelmRelease",
    plural: "helmreleases",
    play: |scene, object| release(scene, object).boxed(),
};
pub(super) const REPOSITORY: Part = Part {
    group: "source.toolkit.fluxcd.io",
    version: "v1",
    kind: "HelmRepository",
    plural: "helmrepositories",
    play: |scene, object| repository(scene, object).boxed(),
};

/// Flux's finalizer: it uninstalls a release before the object is deleted.
const FINALIZER: &str = "finalizers.fluxcd.io";
/// Number of revisions in the history of a release.
const REMEMBERED: usize = 5;

async fn release(scene: Scene, object: DynamicObject) -> Result<(), kube::Error> {
    if object.metadata.deletion_timestamp.is_some() {
        scene.wait().await;
        return finalizer(&scene, &object, false).await;
    }
    if object.data["spec"]["suspend"] == true || is_said(&object, "/status/conditions/0/type", "Ready") {
        return Ok(());
    }
    finalizer(&scene, &object, true).await?;
    let progressing = "simulated: the release is being made";
    scene
        .say(
            &object,
            json!({ "conditions": [
            condition(&object, "Reconciling", "True", "Progressing", progressing),
            condition(&object, "Ready", "Unknown", "Progressing", progressing),
        ] }),
        )
        .await?;
    scene.wait().await;
    let chart = text(&object.data, "/spec/chart/spec/version");
    let status = match (scene.charts)(chart) {
        Some(version) => deployed(&object, chart, &version),
        None => missing(&object, chart),
    };
    scene.say(&object, status).await
}

/// The status of an installed release. Its first condition is `Ready`, by which the simulation recognises it.
fn deployed(object: &DynamicObject, chart: &str, version: &str) -> Value {
    let mut history = object
        .data
        .pointer("/status/history")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let revision = history.first().map_or(1, |last| number(last, "/version", 0) + 1);
    let (verb, reason) = if revision == 1 {
        ("install", "InstallSucceeded")
    } else {
        ("upgrade", "UpgradeSucceeded")
    };
    let first = history
        .first()
        .map_or_else(now, |last| text(last, "/firstDeployed").to_owned());
    for old in &mut history {
        old["status"] = json!("superseded");
    }
    let namespace = object.namespace().unwrap_or_default();
    let name = match text(&object.data, "/spec/releaseName") {
        "" => object.name_any(),
        name => name.to_owned(),
    };
    let values = digest(&object.data["spec"]["values"]);
    history.insert(
        0,
        json!({
            "name": name,
            "namespace": namespace,
            "version": revision,
            "status": "deployed",
            "chartName": text(&object.data, "/spec/chart/spec/chart"),
            "chartVersion": chart,
            "appVersion": version,
            "configDigest": values,
            "digest": digest(&json!([chart, revision, values])),
            "firstDeployed": first,
            "lastDeployed": now(),
        }),
    );
    history.truncate(REMEMBERED);
    let message = format!(
        "simulated: Helm {verb} succeeded for release {namespace}/{name}.v{revision} with chart {chart}"
    );
    json!({
        "observedGeneration": object.metadata.generation,
        "lastAttemptedGeneration": object.metadata.generation,
        "lastAttemptedRevision": chart,
        "history": history,
        "conditions": [
            condition(object, "Ready", "True", reason, &message),
            condition(object, "Released", "True", reason, &message),
        ],
    })
}

/// The status of a release whose chart does not exist in the repository.
fn missing(object: &DynamicObject, chart: &str) -> Value {
    let message = format!("simulated: no chart version found for {chart}");
    json!({
        "observedGeneration": object.metadata.generation,
        "conditions": [condition(object, "Ready", "False", "ArtifactFailed", &message)],
    })
}

fn digest(value: &Value) -> String {
    format!("sha256:{:x}", Sha256::digest(value.to_string()))
}

/// Adds or removes the finalizer.
async fn finalizer(scene: &Scene, object: &DynamicObject, wanted: bool) -> Result<(), kube::Error> {
    let mut finalizers = object.finalizers().to_vec();
    if finalizers.iter().any(|finalizer| finalizer == FINALIZER) == wanted {
        return Ok(());
    }
    finalizers.retain(|finalizer| finalizer != FINALIZER);
    if wanted {
        finalizers.push(FINALIZER.to_owned());
    }
    // With the resourceVersion, because another finalizer may have been added in the meantime.
    let metadata = json!({ "finalizers": finalizers, "resourceVersion": object.metadata.resource_version });
    let api = scene.api(&object.namespace().unwrap_or_default());
    let patch = Patch::Merge(json!({ "metadata": metadata }));
    api.patch(&object.name_any(), &PatchParams::default(), &patch)
        .await?;
    Ok(())
}

async fn repository(scene: Scene, object: DynamicObject) -> Result<(), kube::Error> {
    if is_said(&object, "/status/conditions/0/type", "Ready") {
        return Ok(());
    }
    let url = text(&object.data, "/spec/url");
    let message = format!("simulated: nothing was fetched from {url}");
    let conditions = [condition(&object, "Ready", "True", "Succeeded", &message)];
    scene
        .say(
            &object,
            json!({ "observedGeneration": object.metadata.generation, "conditions": conditions }),
        )
        .await
}
