//! Admission webhooks, called over HTTPS.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::Request;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use stanchion_sandbox::Sandbox;
use tokio::net::TcpListener;

use crate::crds::define;
use crate::raw_requests::send;
use crate::webhook_server;

fn configuration(kind: &str, url: &str, authority: &str, policy: &str) -> Value {
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "test"}, "webhooks": [{
        "name": "test.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": policy,
        "timeoutSeconds": 2,
        "clientConfig": {"url": url, "caBundle": STANDARD.encode(authority)},
        "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
        "objectSelector": {"matchExpressions": [{"key": "exempt", "operator": "DoesNotExist"}]},
    }]})
}

async fn configure(client: &kube::Client, plural: &str, configuration: &Value) {
    let path = format!("/apis/admissionregistration.k8s.io/v1/{plural}");
    let request = Request::post(path)
        .body(configuration.to_string().into_bytes())
        .unwrap();
    client.request::<Value>(request).await.unwrap();
}

fn config_map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}})).unwrap()
}

#[tokio::test]
async fn webhooks_change_and_refuse_objects() {
    let sandbox = Sandbox::builder().start().unwrap();
    let client = sandbox.client();
    let (url, authority) = webhook_server::start().await;
    let mutating = configuration(
        "MutatingWebhookConfiguration",
        &format!("{url}/mutate"),
        &authority,
        "Fail",
    );
    configure(&client, "mutatingwebhookconfigurations", &mutating).await;
    let validating = configuration(
        "ValidatingWebhookConfiguration",
        &format!("{url}/validate"),
        &authority,
        "Fail",
    );
    configure(&client, "validatingwebhookconfigurations", &validating).await;

    let api: Api<ConfigMap> = Api::default_namespaced(client);
    let made = api
        .create(&PostParams::default(), &config_map("good"))
        .await
        .unwrap();
    assert_eq!(made.metadata.labels.unwrap()["seen"], "CREATE");
    let patch = Patch::Merge(json!({"data": {"a": "b"}}));
    let changed = api.patch("good", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(changed.metadata.labels.unwrap()["seen"], "UPDATE");
    let error = api
        .create(&PostParams::default(), &config_map("bad"))
        .await
        .unwrap_err();
    let kube::Error::Api(status) = error else {
        panic!("{error}")
    };
    assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
    assert_eq!(
        status.message,
        "admission webhook \"test.example.com\" denied the request: bad is bad"
    );
    api.delete("good", &DeleteParams::default()).await.unwrap();
    let exempt: ConfigMap =
        serde_json::from_value(json!({"metadata": {"name": "bad", "labels": {"exempt": "yes"}}})).unwrap();
    let made = api.create(&PostParams::default(), &exempt).await.unwrap();
    assert!(!made.metadata.labels.unwrap().contains_key("seen"));
}

#[tokio::test]
async fn a_webhook_that_is_down_fails_or_is_ignored() {
    for (policy, passes) in [("Fail", false), ("Ignore", true)] {
        let sandbox = Sandbox::builder().start().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}/x", listener.local_addr().unwrap());
        drop(listener);
        let (_, authority) = webhook_server::start().await;
        let configuration = configuration("ValidatingWebhookConfiguration", &url, &authority, policy);
        configure(
            &sandbox.client(),
            "validatingwebhookconfigurations",
            &configuration,
        )
        .await;
        let api: Api<ConfigMap> = Api::default_namespaced(sandbox.client());
        let made = api.create(&PostParams::default(), &config_map("a")).await;
        assert_eq!(made.is_ok(), passes, "{made:?}");
        if let Err(kube::Error::Api(status)) = made {
            assert_eq!(status.code, 500);
            assert!(
                status
                    .message
                    .contains("failed calling webhook \"test.example.com\""),
                "{}",
                status.message
            );
        }
    }
}

#[tokio::test]
async fn a_rule_for_another_version_means_this_one_too() {
    for (policy, called) in [("Equivalent", true), ("Exact", false)] {
        let sandbox = Sandbox::builder().start().unwrap();
        let client = sandbox.client();
        let mut crd: Value = serde_json::from_str(include_str!("crd.json")).unwrap();
        let mut newer = crd["spec"]["versions"][0].clone();
        newer["name"] = json!("v2");
        newer["storage"] = json!(false);
        crd["spec"]["versions"].as_array_mut().unwrap().push(newer);
        define(&client, crd).await;
        let (url, authority) = webhook_server::start().await;
        let url = format!("{url}/echo");
        let mut echo = configuration("ValidatingWebhookConfiguration", &url, &authority, "Fail");
        let rule = json!({"operations": ["*"], "apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["gadgets"]});
        echo["webhooks"][0]["rules"] = json!([rule]);
        echo["webhooks"][0]["matchPolicy"] = json!(policy);
        configure(&client, "validatingwebhookconfigurations", &echo).await;

        let gadget = json!({"apiVersion": "example.com/v2", "kind": "Gadget", "metadata": {"name": "a"}, "spec": {"size": 1}});
        let path = "POST /apis/example.com/v2/namespaces/default/gadgets";
        let answer = send(&client, path, &gadget).await;
        if !called {
            assert_eq!(answer.code, 201, "{answer:?}");
            continue;
        }
        let message = answer.body["message"].as_str().unwrap();
        let (_, asked) = message.split_once("denied the request: ").unwrap();
        let asked: Value = serde_json::from_str(asked).unwrap();
        assert_eq!(asked["kind"]["version"], "v1");
        assert_eq!(asked["object"]["apiVersion"], "example.com/v1");
        assert_eq!(asked["requestKind"]["version"], "v2");
        assert_eq!(asked["requestResource"]["version"], "v2");
    }
}
