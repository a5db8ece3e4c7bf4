//! The crash test of the kernel: an operator that is killed after any of its writes, or before it gets the response,
//! leaves behind what its successor needs to reach the same end.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use stanchion_testenv::crash::{CrashScenario, crash_at_every_write};
use stanchion_testenv::{OperatorOptions, TestOperator};
use stanchion_testkit::faults::Faults;

use crate::test_env::{TestEnv, Widget, WidgetSpec, settings};

/// Three widgets, one to create, one to change and one to delete, all of them pending when the operator starts.
struct WidgetScenario;

impl CrashScenario for WidgetScenario {
    type Run = TestEnv;

    async fn set_up(&self) -> TestEnv {
        let env = TestEnv::new("crash").await;
        env.password("mine", "one").await;
        let spec = |size| WidgetSpec {
            size,
            secret_ref: Some("mine".into()),
            ..WidgetSpec::default()
        };
        for name in ["changed", "deleted"] {
            env.widget(name, spec(1)).await;
        }
        let before = env.operator().await;
        for name in ["changed", "deleted"] {
            env.until(&before, name, Widget::is_ready).await;
        }
        before.shutdown.cancel();
        before.ended().await;
        env.widget("made", spec(1)).await;
        env.respec("changed", json!({ "size": 2 })).await;
        let api: Api<Widget> = env.api();
        api.delete("deleted", &DeleteParams::default()).await.unwrap();
        env
    }

    async fn operator(&self, env: &TestEnv, faults: Faults) -> TestOperator {
        let options = OperatorOptions {
            faults,
            settings: settings(),
            ..env.operator_options().await
        };
        TestOperator::new(options).with(env.controller(), &env.namespace)
    }

    async fn converge(&self, env: &TestEnv) {
        let api: Api<Widget> = env.api();
        env.wait().until(&api, "made", Widget::is_ready).await;
        env.wait().until(&api, "changed", Widget::is_ready).await;
        env.wait().gone(&api, "deleted").await;
        // The cluster's own part: the child is deleted with its owner.
        env.wait().gone(&env.api::<ConfigMap>(), "deleted").await;
    }

    async fn end_state(&self, env: &TestEnv) -> Value {
        let things: Value = env
            .world
            .things()
            .into_iter()
            .map(|(name, thing)| (name, json!([thing.size, thing.password])))
            .collect::<serde_json::Map<_, _>>()
            .into();
        let mut maps = env.normalised::<ConfigMap>().await;
        // The cluster itself creates it at some point.
        maps.as_object_mut().unwrap().remove("kube-root-ca.crt");
        json!({
            "widgets": env.normalised::<Widget>().await,
            "children": maps,
            "secrets": env.normalised::<Secret>().await,
            "world": things,
        })
    }

    fn mask(&self, env: &TestEnv, text: &str) -> String {
        text.replace(&env.namespace, "<namespace>")
    }
}

#[tokio::test]
async fn an_operator_killed_at_any_write_reaches_the_same_end() {
    let report = crash_at_every_write(WidgetScenario).await;
    // Finalizer, child and status of the new one; child and status of the changed; finalizer of the deleted.
    assert_eq!(report.writes, 6, "{report}");
    assert_eq!(report.crashes, 13, "{report}");
}
