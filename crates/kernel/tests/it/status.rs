//! Status on a real API server: what is written, when, and which fields of others are kept.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;
use stanchion_kernel::Class;
use stanchion_kernel::lenient::Lenient;

use crate::test_env::{
    FINALIZER, POKE, Running, TestEnv, WAIT_TIMEOUT, Widget, WidgetSpec, WidgetStatus, writes_of,
};

fn sized(size: u32) -> WidgetSpec {
    WidgetSpec {
        size,
        ..WidgetSpec::default()
    }
}

/// Triggers a pass in any case.
async fn poke(env: &TestEnv, operator: &Running, name: &str, value: &str) {
    let passes = env.world.passes(name);
    let annotations = json!({ "metadata": { "annotations": { POKE: value } } });
    env.merge::<Widget>(name, annotations).await;
    let has_looked = async || env.world.passes(name) > passes;
    operator.wait().eventually("another pass", has_looked).await;
    env.flush(operator).await;
}

fn since(widget: &Widget, kind: &str) -> Time {
    widget.condition(kind).unwrap().last_transition_time.clone()
}

#[tokio::test]
async fn nothing_is_written_when_nothing_changed() {
    let env = TestEnv::new("status").await;
    env.widget("one", sized(1)).await;
    let operator = env.operator().await;
    let before = env.settled(&operator, "one").await;
    let writes = writes_of(&operator);
    poke(&env, &operator, "one", "now").await;
    assert_eq!(writes_of(&operator), writes);
    let after: Widget = env.api().get("one").await.unwrap();
    assert_eq!(after.status, before.status);
}

#[tokio::test]
async fn the_transition_time_moves_on_a_flip_and_on_nothing_else() {
    let env = TestEnv::new("status").await;
    env.widget("one", sized(1)).await;
    let operator = env.operator().await;
    let ready = env.settled(&operator, "one").await;
    // Times are whole seconds: the next transition must fall into another one to be visible.
    let is_later = async || jiff::Timestamp::now().as_second() > since(&ready, "Ready").0.as_second() + 1;
    operator.wait().eventually("the next second", is_later).await;

    env.respec("one", json!({ "size": 2 })).await;
    let again = env.settled(&operator, "one").await;
    assert_eq!(again.condition("Ready").unwrap().observed_generation, Some(2));
    assert_eq!(again.status.as_ref().unwrap().observed_generation, Some(2));
    assert_eq!(
        since(&again, "Ready"),
        since(&ready, "Ready"),
        "another generation is no flip"
    );

    env.world.fails("one", Some(Class::Human));
    env.respec("one", json!({ "size": 3 })).await;
    let failed = env
        .until(&operator, "one", |widget| widget.fails_with("Outage"))
        .await;
    assert!(since(&failed, "Ready") > since(&ready, "Ready"));
    assert!(since(&failed, "Stalled") > since(&ready, "Stalled"));
    assert_eq!(
        since(&failed, "Reconciling"),
        since(&ready, "Reconciling"),
        "it did not flip"
    );
    assert_eq!(
        failed.status.unwrap().size,
        Some(2),
        "what was observed before is still said"
    );
}

#[tokio::test]
async fn conditions_of_others_are_kept_and_are_no_news() {
    let env = TestEnv::new("status").await;
    env.widget("one", sized(1)).await;
    let operator = env.operator().await;
    env.settled(&operator, "one").await;
    let widgets: Api<Widget> = env.api();
    let theirs = json!({
        "apiVersion": "test.stanchion.dev/v1",
        "kind": "Widget",
        "status": { "conditions": [{
            "type": "Theirs", "status": "True", "reason": "Kept", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }] },
    });
    let somebody = PatchParams::apply("somebody");
    widgets
        .patch_status("one", &somebody, &Patch::Apply(&theirs))
        .await
        .unwrap();
    let writes = writes_of(&operator);
    poke(&env, &operator, "one", "now").await;
    assert_eq!(
        writes_of(&operator),
        writes,
        "a foreign condition is no difference"
    );

    env.respec("one", json!({ "size": 2 })).await;
    let widget = env.settled(&operator, "one").await;
    assert_eq!(widget.condition("Theirs").unwrap().reason, "Kept");
    assert_eq!(widget.status.unwrap().conditions.len(), 4);
}

/// Status fields that another operator wrote before us and that we never write must not look like a difference forever.
#[tokio::test]
async fn what_a_predecessor_left_in_the_status_is_taken_away_once() {
    let env = TestEnv::new("status").await;
    env.widget("one", sized(1)).await;
    let widgets: Api<Widget> = env.api();
    let legacy = json!({ "status": { "legacy": "of another operator", "size": 7 } });
    let somebody = PatchParams {
        field_manager: Some("somebody".into()),
        ..PatchParams::default()
    };
    widgets
        .patch_status("one", &somebody, &Patch::Merge(legacy))
        .await
        .unwrap();
    let operator = env.operator().await;
    let widget = env.settled(&operator, "one").await;
    let status = widget.status.unwrap();
    assert_eq!((status.size, status.legacy), (Some(1), None));
    let writes = writes_of(&operator);
    poke(&env, &operator, "one", "now").await;
    assert_eq!(writes_of(&operator), writes);
}

/// Another client writes to the object every 20 ms. No write is lost, and neither side has to wait for the end of it.
#[tokio::test]
async fn a_conflict_storm_converges_and_loses_nothing() {
    let env = TestEnv::new("status").await;
    let operator = env.operator().await;
    env.flush(&operator).await;
    env.widget("one", sized(1)).await;
    let widgets: Api<Widget> = env.api();
    let storm = async {
        let mut written = 0_u32;
        let mut ticks = tokio::time::interval(Duration::from_millis(20));
        loop {
            ticks.tick().await;
            // An update of the whole object with the version that was read, as with kubectl edit: any conflict is ours.
            let Ok(mut widget) = widgets.get("one").await else {
                continue;
            };
            let annotations = widget.metadata.annotations.get_or_insert_default();
            annotations.insert(format!("storm/{written}"), "kept".into());
            if widgets
                .replace("one", &PostParams::default(), &widget)
                .await
                .is_ok()
            {
                written += 1;
            }
            if written >= 40 && widget.is_ready() && widget.spec.size == 5 {
                break written;
            }
        }
    };
    let changes = async {
        for size in 2..=5 {
            env.respec("one", json!({ "size": size })).await;
            env.until(&operator, "one", Widget::is_ready).await;
        }
    };
    let (written, ()) = tokio::time::timeout(WAIT_TIMEOUT, futures::future::join(storm, changes))
        .await
        .expect("it converges in the storm");
    let widget = env.settled(&operator, "one").await;
    let annotations = widget.metadata.annotations.unwrap();
    let missing: Vec<u32> = (0..written)
        .filter(|number| !annotations.contains_key(&format!("storm/{number}")))
        .collect();
    assert_eq!(missing, [0; 0]);
    assert_eq!(widget.metadata.finalizers.unwrap(), [FINALIZER]);
    assert_eq!(env.world.thing("one").unwrap().size, 5);
}

/// A status belongs to one object. Another one with the same name, created in the meantime, does not get it.
#[tokio::test]
async fn a_status_does_not_land_on_a_successor() {
    let env = TestEnv::new("status").await;
    let gone = env.widget("one", sized(1)).await;
    env.delete::<Widget>("one").await;
    env.widget("one", sized(1)).await;
    let status = WidgetStatus::default();
    let status = WidgetStatus {
        observed_generation: Some(7),
        ..status
    };
    let api: Api<Widget> = env.api();
    let problem = stanchion_kernel::status::write(&env.api::<Lenient<Widget>>(), &gone, &status, &[], "toy")
        .await
        .unwrap_err();
    assert_eq!(problem.reason, "NotFound", "{problem:?}");
    assert_eq!(api.get("one").await.unwrap().status, None);
}
