//! Killed at every write, the operator reaches the same end state.

use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::api::ListParams;
use serde_json::{Value, json};
use stanchion_api::GitlabInstance;
use stanchion_api::gitlab::Phase;
use stanchion_gitlab::backends::kinds::{PERCONA, REDIS};
use stanchion_gitlab::flux::{HELM_RELEASE, HELM_REPOSITORY};
use stanchion_testenv::TestOperator;
use stanchion_testenv::crash::{CrashScenario, crash_at_every_write};
use stanchion_testkit::crash::normalise;
use stanchion_testkit::faults::Faults;
use stanchion_testkit::wait;

use crate::test_env::{TestEnv, WAIT_TIMEOUT};

/// A scenario.
#[derive(Clone, Copy, Debug)]
enum InstanceScenario {
    /// Creates Secrets of buckets, a repository and a release.
    Create,
    /// Requests a database and a Redis.
    Provision,
    /// Installs the next version.
    Upgrade,
    /// Deletes the instance.
    Delete,
}

impl CrashScenario for InstanceScenario {
    type Run = TestEnv;

    async fn set_up(&self) -> TestEnv {
        let env = TestEnv::new().await;
        env.create_provided_secrets().await;
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
        env
    }

    async fn operator(&self, env: &TestEnv, faults: Faults) -> TestOperator {
        env.build(env.cluster.config().await, &faults).await
    }

    async fn is_gone(&self, env: &TestEnv) -> bool {
        env.is_absent::<GitlabInstance>("hero").await
    }

    async fn converge(&self, env: &TestEnv) {
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

    async fn end_state(&self, env: &TestEnv) -> Value {
        let mut secrets = env.normalised::<Secret>().await;
        if let Some(auth) = secrets.get_mut("hero-redis-auth") {
            // It differs between runs.
            auth["data"] = Value::Null;
        }
        // They contain the namespace.
        let mut bindings = env.normalised::<RoleBinding>().await;
        without_marks(&mut bindings);
        let mut all = json!({
            "instances": env.normalised::<GitlabInstance>().await,
            "secrets": secrets,
            "maps": env.normalised::<ConfigMap>().await,
            "accounts": env.normalised::<ServiceAccount>().await,
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

    fn mask(&self, env: &TestEnv, text: &str) -> String {
        text.replace(&env.namespace, "<namespace>")
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

#[tokio::test]
async fn a_creation_killed_at_any_write_is_finished() {
    let report = crash_at_every_write(InstanceScenario::Create).await;
    assert_eq!(
        report.writes, 9,
        "the finalizer, the account and its binding, three Secrets, the repository, the release, the status: {report}"
    );
}

#[tokio::test]
async fn a_provision_killed_at_any_write_is_finished() {
    crash_at_every_write(InstanceScenario::Provision).await;
}

#[tokio::test]
async fn an_upgrade_killed_at_any_write_is_finished() {
    crash_at_every_write(InstanceScenario::Upgrade).await;
}

#[tokio::test]
async fn a_deletion_killed_at_any_write_is_finished() {
    crash_at_every_write(InstanceScenario::Delete).await;
}
