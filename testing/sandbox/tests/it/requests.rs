//! Requests that no typed client sends, or whose headers matter.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use stanchion_sandbox::{Sandbox, User};

use crate::crds::define;
use crate::raw_requests::{send, send_with};

async fn pod(client: &kube::Client, containers: &[&str]) -> Pod {
    let containers: Vec<Value> = containers
        .iter()
        .map(|name| json!({"name": name, "image": "i"}))
        .collect();
    let pod =
        json!({"metadata": {"name": "p"}, "spec": {"schedulerName": "nobody", "containers": containers}});
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap())
        .await
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_eviction_honours_its_options() {
    let sandbox = Sandbox::builder().workloads(None).start().unwrap();
    let client = sandbox.client();
    let made = pod(&client, &["c"]).await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let eviction = |options: Value| json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}, "deleteOptions": options});
    let path = "POST /api/v1/namespaces/default/pods/p/eviction";
    for (path, body, code) in [
        (path, eviction(json!({"dryRun": ["All"]})), 201),
        (
            "POST /api/v1/namespaces/default/pods/p/eviction?dryRun=All",
            eviction(json!({})),
            201,
        ),
        (path, eviction(json!({"preconditions": {"uid": "another"}})), 409),
        (path, json!({"metadata": {"name": "other"}}), 400),
    ] {
        assert_eq!(send(&client, path, &body).await.code, code, "{body}");
        let pod = pods.get("p").await.unwrap();
        assert!(pod.metadata.deletion_timestamp.is_none(), "{path} {body}");
    }
    let options = json!({"gracePeriodSeconds": 0, "preconditions": {"uid": made.metadata.uid}});
    assert_eq!(send(&client, path, &eviction(options)).await.code, 201);
    assert!(pods.get_opt("p").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_binds_and_finalizes_nothing() {
    let sandbox = Sandbox::builder().workloads(None).start().unwrap();
    let client = sandbox.client();
    pod(&client, &["c"]).await;
    let binding = json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}});
    let path = "POST /api/v1/namespaces/default/pods/p/binding";
    let get = "GET /api/v1/namespaces/default/pods/p";
    for (query, node) in [("?dryRun=All", Value::Null), ("", json!("n"))] {
        assert_eq!(send(&client, &format!("{path}{query}"), &binding).await.code, 201);
        let pod = send(&client, get, &Value::Null).await;
        assert_eq!(pod.body["spec"]["nodeName"], node, "{query}");
    }
    let namespace = json!({"metadata": {"name": "default"}, "spec": {"finalizers": []}});
    let path = "PUT /api/v1/namespaces/default/finalize";
    for (query, left) in [("?dryRun=All", json!(["kubernetes"])), ("", json!([]))] {
        let shown = send(&client, &format!("{path}{query}"), &namespace).await;
        assert_eq!((shown.code, &shown.body["spec"]["finalizers"]), (200, &json!([])));
        let namespace = send(&client, "GET /api/v1/namespaces/default", &Value::Null).await;
        assert_eq!(namespace.body["spec"]["finalizers"], left, "{query}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_one_object_shows_no_other() {
    let sandbox = Sandbox::builder().start().unwrap();
    let client = sandbox.client();
    for name in ["a", "b"] {
        let map = json!({"metadata": {"name": name, "labels": {"x": name}}});
        send(&client, "POST /api/v1/namespaces/default/configmaps", &map).await;
    }
    let maps = "GET /api/v1/watch/namespaces/default/configmaps/a?timeoutSeconds=1";
    for (request, wanted) in [
        (
            "GET /api/v1/watch/namespaces/default?timeoutSeconds=1",
            Some("default"),
        ),
        (maps, Some("a")),
        (&format!("{maps}&labelSelector=x%3Da"), Some("a")),
        (&format!("{maps}&labelSelector=x%3Db"), None),
    ] {
        let shown = send(&client, request, &Value::Null).await.body;
        assert_eq!(
            shown["object"]["metadata"]["name"].as_str(),
            wanted,
            "{request}: {shown}"
        );
    }
    let one = send(&client, "GET /api/v1/namespaces/default?watch=1", &Value::Null)
        .await
        .body;
    assert_eq!(
        one["kind"], "Namespace",
        "the query of a GET of one object makes no watch of it"
    );
}

#[tokio::test(start_paused = true)]
async fn impersonation_needs_the_right_to_each_part() {
    let sandbox = Sandbox::builder().start().unwrap();
    let admin = sandbox.client();
    let may = |group: &str, resource: &str| json!({"apiGroups": [group], "resources": [resource], "verbs": ["impersonate"]});
    let role = json!({"metadata": {"name": "r"}, "rules": [
        may("", "serviceaccounts"), may("authentication.k8s.io", "uids"), may("authentication.k8s.io", "userextras/scopes"),
    ]});
    let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    assert_eq!(send(&admin, &format!("POST {rbac}/roles"), &role).await.code, 201);
    let bound = |kind: &str, role: &str| {
        json!({
            "metadata": {"name": role}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
            "subjects": [{"kind": "User", "name": "eve", "apiGroup": "rbac.authorization.k8s.io"}],
        })
    };
    send(&admin, &format!("POST {rbac}/rolebindings"), &bound("Role", "r")).await;
    let eve = sandbox.client_as(User::new("eve", &[]));
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let who = async |client: &kube::Client, headers: &[(&str, &str)]| {
        send_with(
            client,
            "POST /apis/authentication.k8s.io/v1/selfsubjectreviews",
            &review,
            headers,
        )
        .await
    };
    let robot = ("impersonate-user", "system:serviceaccount:default:robot");
    let answer = who(&eve, &[robot]).await;
    assert_eq!(answer.code, 201, "{answer:?}");
    assert_eq!(
        answer.body["status"]["userInfo"]["groups"],
        json!([
            "system:serviceaccounts",
            "system:serviceaccounts:default",
            "system:authenticated"
        ])
    );
    // Permissions of a role in one namespace do not apply to another one, nor to the whole cluster.
    for headers in [
        &[("impersonate-user", "system:serviceaccount:kube-system:robot")][..],
        &[("impersonate-user", "adam")],
        &[robot, ("impersonate-group", "system:masters")],
        &[robot, ("impersonate-uid", "1")],
        &[robot, ("impersonate-extra-scopes", "all")],
    ] {
        assert_eq!(who(&eve, headers).await.code, 403, "{headers:?}");
    }
    let everything = [
        robot,
        ("impersonate-uid", "1"),
        ("impersonate-extra-scopes", "all"),
    ];
    let user = &who(&admin, &everything).await.body["status"]["userInfo"];
    assert_eq!(
        (&user["uid"], &user["extra"]),
        (&json!("1"), &json!({"scopes": ["all"]}))
    );
    for header in ["impersonate-group", "impersonate-uid", "impersonate-extra-x"] {
        let answer = who(&admin, &[(header, "g")]).await;
        assert_eq!(answer.code, 400, "{header}");
        let message = answer.body["message"].as_str().unwrap();
        assert!(
            message.ends_with("without impersonating a user name"),
            "{message}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn logs_are_those_of_one_container() {
    let sandbox = Sandbox::builder().workloads(None).start().unwrap();
    let client = sandbox.client();
    pod(&client, &["one", "two"]).await;
    let path = "GET /api/v1/namespaces/default/pods/p/log";
    for (query, code, words) in [
        ("?container=one", 200, "no container ran"),
        ("?container=none", 400, "container none is not valid for pod p"),
        (
            "",
            400,
            "a container name must be specified for pod p, choose one of: [one two]",
        ),
    ] {
        let answer = send(&client, &format!("{path}{query}"), &Value::Null).await;
        assert_eq!(answer.code, code, "{query}");
        assert!(
            answer.body.to_string().contains(words),
            "{query}: {}",
            answer.body
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_deprecated_version_is_warned_of() {
    let sandbox = Sandbox::builder().start().unwrap();
    let client = sandbox.client();
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    let version = |name: &str, more: Value| {
        let mut version = json!({"name": name, "served": true, "storage": name == "v1", "schema": schema});
        version
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        version
    };
    let names = json!({"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"});
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.example.com"},
    "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [
        version("v1", json!({})),
        version("v1beta1", json!({"deprecated": true})),
        version("v1alpha1", json!({"deprecated": true, "deprecationWarning": "do not"})),
        version("v2", json!({"deprecated": true})),
    ]}});
    define(&client, crd).await;
    for (version, warning) in [
        ("v1", None),
        (
            "v1beta1",
            Some("299 - \"example.com/v1beta1 Thing is deprecated; use example.com/v1 Thing\""),
        ),
        ("v1alpha1", Some("299 - \"do not\"")),
        ("v2", Some("299 - \"example.com/v2 Thing is deprecated\"")),
    ] {
        let list = send(
            &client,
            &format!("GET /apis/example.com/{version}/things"),
            &Value::Null,
        )
        .await;
        let header = list.headers.get("warning").map(|value| value.to_str().unwrap());
        assert_eq!((list.code, header), (200, warning));
    }
}
