//! A malformed object must not stop the watch of its kind.

use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use kube::{Api, Resource as _};
use serde_json::{Value, json};

use crate::test_env::{TestEnv, Widget, WidgetSpec};

#[tokio::test]
async fn a_malformed_object_is_reported_and_blocks_no_other() {
    let env = TestEnv::new("malformed").await;
    let resource = ApiResource::erase::<Widget>(&());
    let dynamic: Api<DynamicObject> = Api::namespaced_with(env.client.clone(), &env.namespace, &resource);
    let mut malformed = DynamicObject::new("bad", &resource);
    malformed.data = json!({ "spec": { "size": "enormous" } });
    dynamic.create(&PostParams::default(), &malformed).await.unwrap();
    let sized = |size| WidgetSpec {
        size,
        ..WidgetSpec::default()
    };
    env.widget("good", sized(1)).await;

    let operator = env.operator().await;
    env.settled(&operator, "good").await;
    // Both ways to receive it: in the list, and in the watch.
    malformed.metadata.name = Some("worse".into());
    dynamic.create(&PostParams::default(), &malformed).await.unwrap();
    env.widget("better", sized(1)).await;
    env.settled(&operator, "better").await;
    for name in ["bad", "worse"] {
        let is_told = |widget: &DynamicObject| {
            let ready = widget.data.pointer("/status/conditions").and_then(|all| {
                all.as_array()?
                    .iter()
                    .find(|condition| condition["type"] == "Ready")
            });
            ready.is_some_and(|ready| {
                ready["status"] == "False"
                    && ready["reason"] == "Malformed"
                    && ready["message"]
                        .as_str()
                        .is_some_and(|message| message.contains("spec.size: "))
            })
        };
        operator.wait().until(&dynamic, name, is_told).await;
        let reported = async || env.events(name).await.into_iter().next();
        let (reason, note, _) = operator.wait().eventually("an event", reported).await;
        assert_eq!(reason, "Malformed");
        assert!(note.contains("enormous"), "{note}");
    }
    assert_eq!(operator.readiness.missing(), []);

    env.respec("bad", json!({ "size": 3 })).await;
    env.settled(&operator, "bad").await;
    assert_eq!(env.world.thing("bad").unwrap().size, 3);
}

/// The object was valid, so it has external state that must be cleaned up.
#[tokio::test]
async fn a_malformed_object_is_not_ready_and_is_deleted_like_any_other() {
    let env = TestEnv::new("malformed").await;
    let dynamic: Api<DynamicObject> = Api::namespaced_with(
        env.client.clone(),
        &env.namespace,
        &ApiResource::erase::<Widget>(&()),
    );
    let spec = WidgetSpec {
        size: 1,
        ..WidgetSpec::default()
    };
    for name in ["spoilt", "spoilt-late"] {
        env.widget(name, spec.clone()).await;
    }
    let operator = env.operator().await;
    for name in ["spoilt", "spoilt-late"] {
        env.settled(&operator, name).await;
        assert!(env.world.thing(name).is_some());
    }
    let spoil = Patch::Merge(json!({ "spec": { "size": 5_000_000_000_u64 } }));
    dynamic
        .patch("spoilt", &PatchParams::default(), &spoil)
        .await
        .unwrap();
    let is_stale = |widget: &DynamicObject| {
        let conditions = widget
            .data
            .pointer("/status/conditions")
            .and_then(Value::as_array);
        let ready = conditions.and_then(|all| all.iter().find(|condition| condition["type"] == "Ready"));
        ready.is_none_or(|ready| ready["status"] != "False" || ready["observedGeneration"] != 2)
    };
    operator
        .wait()
        .until(&dynamic, "spoilt", |widget| !is_stale(widget))
        .await;
    operator.idle().await;
    assert_eq!(
        env.world.thing("spoilt").unwrap().size,
        1,
        "nothing is done by half of a spec"
    );
    dynamic.delete("spoilt", &DeleteParams::default()).await.unwrap();
    operator.wait().gone(&dynamic, "spoilt").await;
    assert_eq!(env.world.thing("spoilt"), None);

    // Malformed after its deletion began, and received by an operator that never saw it valid.
    drop(operator);
    dynamic
        .delete("spoilt-late", &DeleteParams::default())
        .await
        .unwrap();
    dynamic
        .patch("spoilt-late", &PatchParams::default(), &spoil)
        .await
        .unwrap();
    let operator = env.operator().await;
    operator.wait().gone(&dynamic, "spoilt-late").await;
    assert_eq!(env.world.thing("spoilt-late"), None);
}

/// A newer operator wrote a status that this version does not know, and was rolled back. Nobody can correct that but us.
#[tokio::test]
async fn a_status_of_another_version_is_replaced() {
    let env = TestEnv::new("malformed").await;
    let dynamic: Api<DynamicObject> = Api::namespaced_with(
        env.client.clone(),
        &env.namespace,
        &ApiResource::erase::<Widget>(&()),
    );
    let sized = WidgetSpec {
        size: 1,
        ..WidgetSpec::default()
    };
    env.widget("rolled-back", sized).await;
    let status = json!({
        "apiVersion": Widget::api_version(&()), "kind": Widget::kind(&()), "metadata": { "name": "rolled-back" },
        "status": { "legacy": 3 },
    });
    let params = PatchParams::apply("stanchion-toy").force();
    dynamic
        .patch_status("rolled-back", &params, &Patch::Apply(&status))
        .await
        .unwrap();
    let operator = env.operator().await;
    let is_ready = |widget: &DynamicObject| {
        let conditions = widget
            .data
            .pointer("/status/conditions")
            .and_then(Value::as_array);
        let ready = conditions.and_then(|all| all.iter().find(|condition| condition["type"] == "Ready"));
        ready.is_some_and(|ready| ready["status"] == "True") && widget.data["status"]["legacy"].is_null()
    };
    operator.wait().until(&dynamic, "rolled-back", is_ready).await;
    assert_eq!(env.world.thing("rolled-back").unwrap().size, 1);

    // A cleanup cannot know what such a status records, and does not keep it to itself.
    drop(operator);
    dynamic
        .patch_status("rolled-back", &params, &Patch::Apply(&status))
        .await
        .unwrap();
    dynamic
        .delete("rolled-back", &DeleteParams::default())
        .await
        .unwrap();
    let operator = env.operator().await;
    operator.wait().gone(&dynamic, "rolled-back").await;
    assert_eq!(env.world.thing("rolled-back"), None);
    let events = env.events("rolled-back").await;
    assert!(
        events
            .iter()
            .any(|(reason, note, _)| reason == "Malformed" && note.contains("status.legacy")),
        "{events:?}"
    );
}
