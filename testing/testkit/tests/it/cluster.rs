//! The cluster behaves like a real one: workloads roll out and fail, RBAC is enforced, and requests are logged.

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, StatefulSet},
        batch::v1::Job,
        core::v1::{ConfigMap, Pod, Secret},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client,
    api::{DeleteParams, DynamicObject, ListParams, PostParams},
    core::{ApiResource, GroupVersionKind},
};
use serde_json::json;
use stanchion_testkit::{
    cluster::{Cluster, Grant, rule},
    unique, wait,
};

use crate::DEADLINE;

/// A Deployment or a `StatefulSet`, as a manifest.
fn workload(kind: &str, name: &str, image: &str) -> String {
    json!({
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": image}]},
            },
        },
    })
    .to_string()
}

fn job(name: &str, image: &str) -> String {
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "backoffLimit": 0,
            "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": image}]}},
        },
    })
    .to_string()
}

#[tokio::test]
async fn workloads_roll_for_real() {
    let cluster = Cluster::shared().await;
    let namespace = cluster.namespace("roll").await;
    cluster
        .apply(
            &workload("Deployment", "web", "registry.example/web:1"),
            &namespace,
        )
        .await;
    cluster
        .apply(
            &workload("StatefulSet", "db", "registry.example/db:1"),
            &namespace,
        )
        .await;
    let client = cluster.client().await;
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), &namespace);
    let rolled = |generation: i64| {
        move |deployment: &Deployment| {
            deployment.status.as_ref().is_some_and(|status| {
                status.observed_generation == Some(generation)
                    && status.ready_replicas == Some(2)
                    && status.updated_replicas == Some(2)
            })
        }
    };
    wait::until(&deployments, "web", DEADLINE, rolled(1)).await;
    cluster
        .apply(
            &workload("Deployment", "web", "registry.example/web:2"),
            &namespace,
        )
        .await;
    wait::until(&deployments, "web", DEADLINE, rolled(2)).await;
    let sets: Api<StatefulSet> = Api::namespaced(client, &namespace);
    wait::until(&sets, "db", DEADLINE, |set| {
        set.status
            .as_ref()
            .is_some_and(|status| status.ready_replicas == Some(2))
    })
    .await;
}

#[tokio::test]
async fn images_decide_how_pods_fare() {
    let cluster = Cluster::shared().await;
    let namespace = cluster.namespace("images").await;
    let client = cluster.client().await;
    let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
    // Image, phase of the pod, and the waiting reason of its container.
    let outcomes = [
        ("no-such-image", "Pending", Some("ImagePullBackOff")),
        ("crash-loop", "Running", Some("CrashLoopBackOff")),
        ("hang", "Running", None),
    ];
    for (image, ..) in outcomes {
        cluster
            .apply(
                &workload("Deployment", image, &format!("example/{image}:1")),
                &namespace,
            )
            .await;
    }
    for (image, phase, reason) in outcomes {
        wait::eventually(
            DEADLINE,
            &format!("a pod of {image} to be {phase} and {reason:?}"),
            async || {
                let of_image = ListParams::default().labels(&format!("app={image}"));
                let listed = pods.list(&of_image).await.map_err(|error| error.to_string())?;
                let status = listed
                    .items
                    .first()
                    .and_then(|pod| pod.status.clone())
                    .unwrap_or_default();
                let container = status.container_statuses.unwrap_or_default().first().cloned();
                let container = container.ok_or("no container yet")?;
                let waiting = container
                    .state
                    .unwrap_or_default()
                    .waiting
                    .unwrap_or_default()
                    .reason;
                let found = (status.phase.as_deref(), waiting.as_deref(), container.ready);
                if found == (Some(phase), reason, false) {
                    Ok(())
                } else {
                    Err(format!("{found:?}"))
                }
            },
        )
        .await;
    }
    let jobs: Api<Job> = Api::namespaced(client, &namespace);
    for (name, image, condition) in [
        ("good", "example/migrate:1", "Complete"),
        ("bad", "example/crash-loop:1", "Failed"),
    ] {
        cluster.apply(&job(name, image), &namespace).await;
        wait::until(&jobs, name, DEADLINE, |job| {
            let conditions = job
                .status
                .as_ref()
                .and_then(|status| status.conditions.clone())
                .unwrap_or_default();
            conditions
                .iter()
                .any(|found| found.type_ == condition && found.status == "True")
        })
        .await;
    }
}

#[tokio::test]
async fn rights_are_enforced_and_the_audit_log_tells() {
    let cluster = Cluster::shared().await;
    let namespace = cluster.namespace("rights").await;
    let grants = [Grant::In(
        namespace.clone(),
        vec![rule("", &["configmaps"], &["get", "create"])],
    )];
    let user = cluster.user(&namespace, "ann", &grants).await;
    let audit = cluster.audit();

    let maps: Api<ConfigMap> = Api::namespaced(user.client().await, &namespace);
    let mut map = ConfigMap::default();
    map.metadata.name = Some("mine".to_owned());
    maps.create(&PostParams::default(), &map).await.unwrap();
    let denied = maps.delete("mine", &DeleteParams::default()).await.unwrap_err();
    assert!(
        matches!(&denied, kube::Error::Api(status) if status.is_forbidden()),
        "{denied}"
    );

    let requests = audit
        .requests()
        .await
        .of_user(user.name())
        .in_namespace(&namespace);
    assert_eq!(requests.clone().writes().count(), 2, "{requests:#?}");
    assert_eq!(requests.clone().with_verb("create").forbidden().count(), 0);
    let forbidden = requests.forbidden();
    assert_eq!(forbidden.count(), 1);
    assert_eq!(forbidden.list()[0].verb, "delete");
    assert_eq!(forbidden.list()[0].resource, "configmaps");
    assert_eq!(forbidden.list()[0].name, "mine");
    assert_eq!(
        cluster.audit().requests().await.of_user(user.name()).count(),
        0,
        "it starts from now"
    );
}

#[tokio::test]
async fn rights_everywhere_cover_every_namespace() {
    let cluster = Cluster::shared().await;
    let (here, there) = (cluster.namespace("here").await, cluster.namespace("there").await);
    let rules = vec![rule("", &["secrets"], &["list"])];
    let list = async |client: Client, namespace: &str| {
        Api::<Secret>::namespaced(client, namespace)
            .list(&ListParams::default())
            .await
            .map(drop)
    };
    let local = cluster
        .user(&here, "local", &[Grant::In(here.clone(), rules.clone())])
        .await;
    list(local.client().await, &here).await.unwrap();
    list(local.client().await, &there).await.unwrap_err();
    let global = cluster.user(&here, "global", &[Grant::Everywhere(rules)]).await;
    list(global.client().await, &there).await.unwrap();
}

#[tokio::test]
async fn crds_are_served_once_installed() {
    let cluster = Cluster::shared().await;
    let namespace = cluster.namespace("crds").await;
    let group = format!("{}.example.com", unique::name("g"));
    let crd: CustomResourceDefinition = serde_json::from_value(json!({
        "metadata": {"name": format!("things.{group}")},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things", "singular": "thing"},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    }))
    .unwrap();
    cluster.install_crds([crd.clone(), crd]).await;
    let manifest =
        format!("apiVersion: {group}/v1\nkind: Thing\nmetadata: {{name: one}}\nspec: {{size: 3}}\n");
    cluster.apply(&manifest, &namespace).await;
    let kind = GroupVersionKind::gvk(&group, "v1", "Thing");
    let resource = ApiResource::from_gvk_with_plural(&kind, "things");
    let things: Api<DynamicObject> = Api::namespaced_with(cluster.client().await, &namespace, &resource);
    assert_eq!(things.get("one").await.unwrap().data["spec"]["size"], 3);
}

#[tokio::test]
async fn kubectl_works() {
    let cluster = Cluster::shared().await;
    let Some(kubectl) = cluster.kubectl() else {
        return;
    };
    let namespace = cluster.namespace("kubectl").await;
    let manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {size: big}\n";
    let here = ["-n", namespace.as_str()];
    let create = [&here[..], &["create", "-f", "-"]].concat();
    let created = kubectl.run_with(&create, manifest).await;
    assert!(created.unwrap().contains("created"));
    let size = ["get", "configmap", "one", "-o", "jsonpath={.data.size}"];
    assert_eq!(kubectl.run(&[&here[..], &size].concat()).await.unwrap(), "big");
    let two = [&here[..], &["get", "configmap", "two"]].concat();
    let failed = kubectl.run(&two).await.unwrap_err();
    assert!(failed.to_string().contains("NotFound"), "{failed}");
}
