//! Killed at every write, the operator reaches the same end state.

use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::api::ListParams;
use serde_json::{Value, json};
use stanchion_api::GitlabInstance;
use stanchion_api::gitlab::Phase;
use stanchion_gitlab::backends::kinds::{PERCONA, REDIS};
use stanchion_gitlab::flux::{HELM_RELEASE, HELM_REPOSITORY};
use stanchion_testkit::crash::{Report, Scenario, crash_at_every_write, normalise, objects};
use stanchion_testkit::faults::Faults;
use stanchion_testkit::running::Latest;
use stanchion_testkit::wait;

use crate::bed::{Bed, PATIENCE};

/// A scenario.
#[derive(Clone, Copy, Debug)]
enum Story {
    /// Creates Secrets of buckets, a repository and a release.
    Create,
    /// Requests a database and a Redis.
    Provision,
    /// Installs the next version.
    Upgrade,
    /// Deletes the instance.
    Delete,
}

struct Told {
    bed: Bed,
    operator: Latest,
}

impl Scenario for Story {
    type Run = Told;

    async fn set_up(&self) -> Told {
        let bed = Bed::new().await;
        bed.brought().await;
        let spec = match self {
            Self::Provision => json!({
                "postgres": { "managed": true, "credentialsSecret": null },
                "redis": { "managed": true, "credentialsSecret": null },
            }),
            Self::Upgrade => json!({ "version": "17.3.0", "upgrade": { "waitForMigrations": false } }),
            Self::Create | Self::Delete => json!({}),
        };
        bed.instance("hero", spec).await;
        if matches!(self, Self::Upgrade | Self::Delete) {
            let operator = bed.operator().await;
            bed.release("hero").await;
            let version = if matches!(self, Self::Upgrade) {
                "17.3.0"
            } else {
                "17.11.7"
            };
            bed.phase("hero", Phase::Deploying).await;
            bed.installed("hero", version).await;
            bed.phase("hero", Phase::Ready).await;
            operator.kill().await;
        }
        match self {
            Self::Upgrade => drop(bed.respec("hero", json!({ "version": "17.5.5" })).await),
            Self::Delete => bed.delete("hero").await,
            Self::Create | Self::Provision => {}
        }
        Told {
            bed,
            operator: Latest::new("gitlab"),
        }
    }

    async fn operate(&self, told: &Told, faults: Faults) {
        let config = told.bed.cluster.config().await;
        let (operator, metrics) = told.bed.build(config, faults);
        let _now = told.operator.runs(move || metrics.encode());
        operator.run().await;
    }

    async fn has_looked(&self, told: &Told) -> bool {
        told.operator.has_looked() || told.bed.instances().get_opt("hero").await.unwrap().is_none()
    }

    async fn converge(&self, told: &Told) {
        let bed = &told.bed;
        match self {
            Self::Create => drop(bed.phase("hero", Phase::Deploying).await),
            Self::Provision => drop(
                bed.shows("hero", Phase::Provisioning, "PostgresProvisioning")
                    .await,
            ),
            Self::Upgrade => {
                bed.release_of("hero", "8.5.5").await;
                bed.phase("hero", Phase::Deploying).await;
            }
            Self::Delete => {
                bed.wait().gone(&bed.instances(), "hero").await;
                wait::eventually(PATIENCE, "the collector", async || {
                    let repositories = bed
                        .foreign(&HELM_REPOSITORY)
                        .list(&ListParams::default())
                        .await
                        .unwrap();
                    repositories.items.is_empty()
                })
                .await;
            }
        }
    }

    async fn end_state(&self, told: &Told) -> Value {
        let bed = &told.bed;
        let mut secrets = objects::<Secret>(bed.client.clone(), &bed.namespace).await;
        if let Some(auth) = secrets.get_mut("hero-redis-auth") {
            // It differs between runs.
            auth["data"] = Value::Null;
        }
        // They contain the namespace.
        let mut bindings = objects::<RoleBinding>(bed.client.clone(), &bed.namespace).await;
        without_marks(&mut bindings);
        let mut all = json!({
            "instances": objects::<GitlabInstance>(bed.client.clone(), &bed.namespace).await,
            "secrets": secrets,
            "maps": objects::<ConfigMap>(bed.client.clone(), &bed.namespace).await,
            "accounts": objects::<ServiceAccount>(bed.client.clone(), &bed.namespace).await,
            "bindings": bindings,
        });
        for kind in [&HELM_RELEASE, &HELM_REPOSITORY, &PERCONA, &REDIS] {
            let found = bed
                .foreign(kind)
                .list(&ListParams::default())
                .await
                .unwrap()
                .items;
            let found: Vec<Value> = found
                .iter()
                .map(|object| {
                    let mut object = serde_json::to_value(object).unwrap();
                    normalise(&mut object);
                    without_marks(&mut object);
                    object
                })
                .collect();
            all[kind.kind] = json!(found);
        }
        all
    }

    fn mask(&self, told: &Told, text: &str) -> String {
        text.replace(&told.bed.namespace, "<namespace>")
    }
}

/// Removes fingerprints of Secrets and what is derived from them: each run has its own key.
fn without_marks(value: &mut Value) {
    match value {
        Value::String(text) if text.starts_with("v1.") => *value = Value::Null,
        Value::Array(list) => list.iter_mut().for_each(without_marks),
        Value::Object(map) => {
            map.remove("stanchion.dev/intent");
            map.values_mut().for_each(without_marks);
        }
        _ => {}
    }
}

async fn crash(story: Story) -> Report {
    Box::pin(crash_at_every_write(&story)).await
}

#[tokio::test]
async fn a_creation_killed_at_any_write_is_finished() {
    let report = crash(Story::Create).await;
    assert_eq!(
        report.writes, 9,
        "the finalizer, the account and its binding, three Secrets, the repository, the release, the status: {report}"
    );
}

#[tokio::test]
async fn a_provision_killed_at_any_write_is_finished() {
    crash(Story::Provision).await;
}

#[tokio::test]
async fn an_upgrade_killed_at_any_write_is_finished() {
    crash(Story::Upgrade).await;
}

#[tokio::test]
async fn a_deletion_killed_at_any_write_is_finished() {
    crash(Story::Delete).await;
}
