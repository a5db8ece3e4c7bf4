//! Objects that go through none of the steps, and passes that are blocked after the last one.

use kube::Api;
use serde_json::json;
use stanchion_kernel::{Class, condition};

use crate::fixture::{FINALIZER, TestEnv, Widget, WidgetSpec};

fn widget(size: u32, suspend: bool) -> WidgetSpec {
    WidgetSpec {
        size,
        suspend,
        ..WidgetSpec::default()
    }
}

/// The reason of `Reconciling=False`, or of `Stalled=True`.
fn idle_reason(widget: &Widget) -> &str {
    let condition = widget.condition(condition::RECONCILING).unwrap();
    assert_eq!(condition.status, "False");
    &condition.reason
}

#[tokio::test]
async fn a_suspended_object_is_left_alone_until_it_is_resumed() {
    let env = TestEnv::new("inactive").await;
    env.widget("one", widget(1, true)).await;
    let operator = env.operator().await;
    let suspended = env
        .until(&operator, "one", |widget| widget.fails_with("Suspended"))
        .await;
    assert_eq!(idle_reason(&suspended), "Suspended");
    assert_eq!(suspended.metadata.finalizers, None);
    assert_eq!(env.world.passes("one"), 0);
    assert_eq!(env.world.inactive_passes(), [("one".to_owned(), "Suspended")]);

    env.respec("one", json!({ "suspend": false })).await;
    let active = env.settled(&operator, "one").await;
    assert_eq!(active.metadata.finalizers.unwrap(), [FINALIZER]);

    env.respec("one", json!({ "suspend": true, "size": 2 })).await;
    env.until(&operator, "one", |widget| widget.fails_with("Suspended"))
        .await;
    assert_eq!(env.world.thing("one").unwrap().size, 1);
    env.delete::<Widget>("one").await;
    operator.wait().gone(&env.api::<Widget>(), "one").await;
    assert_eq!(env.world.thing("one"), None);
}

/// A controller can still do what neither `suspend` nor an invalid spec may put off.
#[tokio::test]
async fn an_inactive_object_reports_what_cannot_wait() {
    let env = TestEnv::new("inactive").await;
    env.world.withdraw("suspended");
    env.world.withdraw("invalid");
    env.widget("suspended", widget(1, true)).await;
    env.widget("invalid", widget(0, false)).await;
    env.widget("only-invalid", widget(0, false)).await;
    let operator = env.operator().await;
    for name in ["suspended", "invalid"] {
        env.until(&operator, name, |widget| widget.fails_with("Withdrawn"))
            .await;
    }
    env.until(&operator, "only-invalid", |widget| {
        widget.fails_with("InvalidSize")
    })
    .await;
    let mut called = env.world.inactive_passes();
    called.sort_unstable();
    called.dedup();
    let expected = [
        ("invalid", "InvalidSize"),
        ("only-invalid", "InvalidSize"),
        ("suspended", "Suspended"),
    ];
    assert_eq!(called, expected.map(|(name, why)| (name.to_owned(), why)));
    assert!(env.world.things().is_empty());
}

/// What a pass has done stays, its blocker is reported by its class, and the pass is repeated.
#[tokio::test]
async fn a_blocked_pass_has_done_its_work_and_is_retried() {
    let env = TestEnv::new("inactive").await;
    env.world.blocks("one", Some(Class::Transient));
    env.widget("one", widget(3, false)).await;
    let operator = env.operator().await;
    let blocked = env
        .until(&operator, "one", |widget| widget.fails_with("Blocked"))
        .await;
    assert_eq!(env.world.thing("one").unwrap().size, 3);
    assert_eq!(blocked.condition(condition::RECONCILING).unwrap().status, "True");
    env.world.blocks("one", None);
    env.until(&operator, "one", Widget::is_ready).await;
    env.world.blocks("one", Some(Class::Human));
    env.respec("one", json!({ "size": 4 })).await;
    let stalled = env
        .until(&operator, "one", |widget| {
            widget
                .condition(condition::STALLED)
                .is_some_and(|stalled| stalled.status == "True")
        })
        .await;
    assert_eq!(stalled.condition(condition::STALLED).unwrap().reason, "Blocked");
    assert_eq!(env.world.thing("one").unwrap().size, 4);
    let widgets: Api<Widget> = env.api();
    env.delete::<Widget>("one").await;
    operator.wait().gone(&widgets, "one").await;
}
