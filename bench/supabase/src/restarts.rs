//! Measures the work of an operator after a restart.

use std::path::Path;
use std::time::{Duration, Instant};

use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use stanchion_bench_bed::row;
use tokio::time::sleep;

use crate::seconds;
use crate::stage::{Stage, name};

/// Enough to reconcile everything.
const WINDOW: Duration = Duration::from_secs(20);
/// How often the repair is checked.
const GLANCE: Duration = Duration::from_millis(50);
/// Every nth project was damaged while the operator was down.
const EVERY: usize = 10;

/// Nothing has changed while the operator was down.
pub(crate) async fn in_order(stage: &Stage, binary: &Path) -> bool {
    stage.bed.unwritten().await;
    let mark = stage.bed.mark();
    let operator = stage.operator(binary);
    sleep(WINDOW).await;
    let counted = stage.bed.count(&mark).await;
    drop(operator);
    row(
        "restart: writes, reads",
        &format!("{}, {}", counted.writes, counted.reads),
    );
    if counted.writes > 0 {
        println!(
            "what is in order must not be written again: {:#?}",
            counted.examples
        );
    }
    counted.writes == 0
}

/// Services were deleted and Deployments changed while the operator was down.
pub(crate) async fn with_drift(stage: &Stage, binary: &Path, projects: usize) -> bool {
    let harmed: Vec<usize> = (0..projects).step_by(EVERY).collect();
    let harm = json!({ "spec": { "replicas": 3 } });
    stage
        .each(harmed.clone(), async |project| {
            let service = format!("{project}-meta");
            let deleted = stage.services.delete(&service, &DeleteParams::default()).await;
            deleted.expect("a Service");
            let deployment = format!("{project}-auth");
            let (params, patch) = (PatchParams::default(), Patch::Merge(&harm));
            let changed = stage.deployments.patch(&deployment, &params, &patch).await;
            changed.expect("a Deployment");
        })
        .await;
    let start = Instant::now();
    let _operator = stage.operator(binary);
    let mut first = None;
    for number in &harmed {
        while !is_mended(stage, &name(*number)).await {
            sleep(GLANCE).await;
        }
        first.get_or_insert_with(|| start.elapsed());
    }
    let first = first.map_or_else(String::new, seconds);
    row(
        &format!("restart, {} harmed: first, all", harmed.len()),
        &format!("{first}, {}", seconds(start.elapsed())),
    );
    true
}

async fn is_mended(stage: &Stage, project: &str) -> bool {
    let service = stage.services.get_opt(&format!("{project}-meta")).await;
    let deployment = stage.deployments.get(&format!("{project}-auth")).await;
    let replicas = deployment
        .expect("a Deployment")
        .spec
        .and_then(|spec| spec.replicas);
    service.expect("an answer").is_some() && replicas == Some(1)
}
