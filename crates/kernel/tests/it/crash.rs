//! The crash test of the kernel: an operator that is killed after any of its writes, or before it gets the response,
//! leaves behind what its successor needs to reach the same end.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use stanchion_kernel::client::{self, Options};
use stanchion_kernel::telemetry::Metrics;
use stanchion_testkit::crash::{Scenario, crash_at_every_write, objects};
use stanchion_testkit::faults::Faults;
use stanchion_testkit::running::Latest;
use stanchion_testkit::wait;

use crate::fixture::{DEADLINE, TestEnv, Widget, WidgetSpec, environment, settings};

/// Three widgets, one to create, one to change and one to delete, all of them pending when the operator starts.
struct Life;

/// One run.
struct CrashRun {
    env: TestEnv,
    operator: Latest,
}

impl Scenario for Life {
    type Run = CrashRun;

    async fn set_up(&self) -> CrashRun {
        let env = TestEnv::new("crash").await;
        env.secret("mine", "one").await;
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
        CrashRun {
            env,
            operator: Latest::new("toy"),
        }
    }

    async fn operate(&self, CrashRun { env, operator }: &CrashRun, faults: Faults) {
        let metrics = Metrics::new("test");
        let options = Options::new("toy").with_layer(faults);
        let client = client::build(env.cluster.config().await, &metrics, &options).unwrap();
        let toy = env.assemble(environment(client, &metrics, settings()));
        let _now = operator.runs(move || metrics.encode());
        toy.run().await;
    }

    async fn has_looked(&self, run: &CrashRun) -> bool {
        run.operator.has_looked()
    }

    async fn converge(&self, CrashRun { env, .. }: &CrashRun) {
        let api: Api<Widget> = env.api();
        wait::until(&api, "made", DEADLINE, Widget::is_ready).await;
        wait::until(&api, "changed", DEADLINE, Widget::is_ready).await;
        wait::gone(&api, "deleted", DEADLINE).await;
        // The cluster's own part: the child is deleted with its owner.
        wait::gone(&env.api::<ConfigMap>(), "deleted", DEADLINE).await;
    }

    async fn end_state(&self, CrashRun { env, .. }: &CrashRun) -> Value {
        let things: Value = env
            .world
            .things()
            .into_iter()
            .map(|(name, thing)| (name, json!([thing.size, thing.password])))
            .collect::<serde_json::Map<_, _>>()
            .into();
        let mut maps = objects::<ConfigMap>(env.client.clone(), &env.namespace).await;
        // The cluster itself creates it at some point.
        maps.as_object_mut().unwrap().remove("kube-root-ca.crt");
        json!({
            "widgets": objects::<Widget>(env.client.clone(), &env.namespace).await,
            "children": maps,
            "secrets": objects::<Secret>(env.client.clone(), &env.namespace).await,
            "world": things,
        })
    }

    fn mask(&self, run: &CrashRun, text: &str) -> String {
        text.replace(&run.env.namespace, "<namespace>")
    }
}

#[tokio::test]
async fn an_operator_killed_at_any_write_reaches_the_same_end() {
    let report = crash_at_every_write(&Life).await;
    // Finalizer, child and status of the new one; child and status of the changed; finalizer of the deleted.
    assert_eq!(report.writes, 6, "{report}");
    assert_eq!(report.crashes, 13, "{report}");
}
