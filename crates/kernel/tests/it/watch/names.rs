//! A name from a spec must be valid before it is used in a URL.

use kube::api::PostParams;

use crate::test_env::{TestEnv, Widget, WidgetSpec};

/// Attacks a23 and a27: the client does not escape names, so these would request something else.
#[tokio::test]
async fn an_invalid_name_is_never_requested() {
    let env = TestEnv::new("names").await;
    let other = env.cluster.namespace("names-bank").await;
    let operator = env.operator().await;
    let names = [
        format!("../../{other}/secrets/crown-jewel"),
        "pw?watch=true".into(),
        "pw?x=1".into(),
        "pw#x".into(),
        "pw/status".into(),
        "..".into(),
        "Pw".into(),
        "p%77".into(),
        "a".repeat(254),
    ];
    for (number, name) in names.iter().enumerate() {
        let spec = WidgetSpec {
            size: 1,
            secret_ref: Some(name.clone()),
            ..WidgetSpec::default()
        };
        let widget = Widget::new(&format!("w{number}"), spec);
        env.api::<Widget>()
            .create(&PostParams::default(), &widget)
            .await
            .unwrap();
        let refused = env
            .until(&operator, &format!("w{number}"), |widget| {
                widget.fails_with("InvalidName")
            })
            .await;
        let message = &refused.condition("Ready").unwrap().message;
        assert!(message.contains("Secret") && message.len() < 300, "{message}");
    }
    let asked = operator
        .faults
        .calls()
        .into_iter()
        .filter(|call| call.target.resource == "secrets");
    let asked: Vec<_> = asked.filter(|call| !call.target.name.is_empty()).collect();
    assert!(asked.is_empty(), "{asked:?}");
}
