//! One object that cannot be read must not stop the watch of its kind.

use kube::Api;
use kube::api::{DynamicObject, PostParams};
use kube::core::ApiResource;
use serde_json::json;

use crate::toy::{Bed, Widget, WidgetSpec};

#[tokio::test]
async fn a_malformed_object_is_told_of_and_stops_nobody() {
    let bed = Bed::new("malformed").await;
    let resource = ApiResource::erase::<Widget>(&());
    let dynamic: Api<DynamicObject> = Api::namespaced_with(bed.client.clone(), &bed.namespace, &resource);
    let mut malformed = DynamicObject::new("bad", &resource);
    malformed.data = json!({ "spec": { "size": "enormous" } });
    dynamic.create(&PostParams::default(), &malformed).await.unwrap();
    let sized = |size| WidgetSpec {
        size,
        ..WidgetSpec::default()
    };
    bed.widget("good", sized(1)).await;

    let operator = bed.operator().await;
    bed.settled(&operator, "good").await;
    // Both ways to meet it: in the list, and in the watch.
    malformed.metadata.name = Some("worse".into());
    dynamic.create(&PostParams::default(), &malformed).await.unwrap();
    bed.widget("better", sized(1)).await;
    bed.settled(&operator, "better").await;
    for name in ["bad", "worse"] {
        let told = async || bed.events(name).await.into_iter().next();
        let (reason, note, _) = operator.wait().eventually("an event", told).await;
        assert_eq!(reason, "Malformed");
        assert!(note.contains("enormous"), "{note}");
    }
    assert_eq!(operator.synced.missing(), []);

    bed.respec("bad", json!({ "size": 3 })).await;
    bed.settled(&operator, "bad").await;
    assert_eq!(bed.world.thing("bad").unwrap().size, 3);
}
