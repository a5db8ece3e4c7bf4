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

use crate::test_env::{TestEnv, WAIT_TIMEOUT};

/// A scenario.
#[derive(Clone, Copy, Debug)]
enum CrashScenario {
    /// Creates Secrets of buckets, a repository and a release.
    Create,
    /// Requests a database and a Redis.
    Provision,
    /// Installs the next version.
    Upgrade,
    /// Deletes the instance.
    Delete,
}

struct CrashRun {
    env: TestEnv,
    operator: Latest,
}

impl Scenario for CrashScenario {
    type Run = CrashRun;

    async fn set_up(&self) -> CrashRun {
        let env = TestEnv::new().await;
        env.brought().await;
        let spec = match self {
            Self::Provision => json!({
                "postgres": { "managed": true, "credentialsSecret": null },
                "redis": { "managed": true, "credentialsSecret": null },
            }),
            Self::Upgrade => json!({ "version": "17.3.0", "upgrade": { "waitForMigrations": false } }),
            Self::Create | Self::Delete => json!({}),
        };
        env.instance("hero", spec).await;
        if matches!(self, Self::Upgrade | Self::Delete) {
            let operator = env.operator().await;
            env.release("hero").await;
            let version = if matches!(self, Self::Upgrade) {
                "17.3.0"
            } else {
                "17.11.7"
            };
            env.phase("hero", Phase::Deploying).await;
            env.installed("hero", version).await;
            env.phase("hero", Phase::Ready).await;
            operator.kill().await;
        }
        match self {
            Self::Upgrade => drop(env.respec("hero", json!({ "version": "17.5.5" })).await),
            Self::Delete => env.delete("hero").await,
            Self::Create | Self::Provision => {}
        }
        CrashRun {
            env,
            operator: Latest::new("gitlab"),
        }
    }

    async fn operate(&self, run: &CrashRun, faults: Faults) {
        let config = run.env.cluster.config().await;
        let (operator, metrics) = run.env.build(config, faults);
        let _now = run.operator.runs(move || metrics.encode());
        operator.run().await;
    }

    async fn has_looked(&self, run: &CrashRun) -> bool {
        run.operator.has_looked() || run.env.instances().get_opt("hero").await.unwrap().is_none()
    }

    async fn converge(&self, run: &CrashRun) {
        let env = &run.env;
        match self {
            Self::Create => drop(env.phase("hero", Phase::Deploying).await),
            Self::Provision => drop(
                env.shows("hero", Phase::Provisioning, "PostgresProvisioning")
                    .await,
            ),
            Self::Upgrade => {
                env.release_of("hero", "8.5.5").await;
                env.phase("hero", Phase::Deploying).await;
            }
            Self::Delete => {
                env.wait().gone(&env.instances(), "hero").await;
                wait::eventually(WAIT_TIMEOUT, "the collector", async || {
                    let repositories = env
                        .external(&HELM_REPOSITORY)
                        .list(&ListParams::default())
                        .await
                        .unwrap();
                    repositories.items.is_empty()
                })
                .await;
            }
        }
    }

    async fn end_state(&self, run: &CrashRun) -> Value {
        let env = &run.env;
        let mut secrets = objects::<Secret>(env.client.clone(), &env.namespace).await;
        if let Some(auth) = secrets.get_mut("hero-redis-auth") {
            // It differs between runs.
            auth["data"] = Value::Null;
        }
        // They contain the namespace.
        let mut bindings = objects::<RoleBinding>(env.client.clone(), &env.namespace).await;
        without_marks(&mut bindings);
        let mut all = json!({
            "instances": objects::<GitlabInstance>(env.client.clone(), &env.namespace).await,
            "secrets": secrets,
            "maps": objects::<ConfigMap>(env.client.clone(), &env.namespace).await,
            "accounts": objects::<ServiceAccount>(env.client.clone(), &env.namespace).await,
            "bindings": bindings,
        });
        for kind in [&HELM_RELEASE, &HELM_REPOSITORY, &PERCONA, &REDIS] {
            let found = env
                .external(kind)
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

    fn mask(&self, run: &CrashRun, text: &str) -> String {
        text.replace(&run.env.namespace, "<namespace>")
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

async fn crash(scenario: CrashScenario) -> Report {
    Box::pin(crash_at_every_write(&scenario)).await
}

#[tokio::test]
async fn a_creation_killed_at_any_write_is_finished() {
    let report = crash(CrashScenario::Create).await;
    assert_eq!(
        report.writes, 9,
        "the finalizer, the account and its binding, three Secrets, the repository, the release, the status: {report}"
    );
}

#[tokio::test]
async fn a_provision_killed_at_any_write_is_finished() {
    crash(CrashScenario::Provision).await;
}

#[tokio::test]
async fn an_upgrade_killed_at_any_write_is_finished() {
    crash(CrashScenario::Upgrade).await;
}

#[tokio::test]
async fn a_deletion_killed_at_any_write_is_finished() {
    crash(CrashScenario::Delete).await;
}
