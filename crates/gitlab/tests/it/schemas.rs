//! Objects for other operators are valid for their CRDs: every field is known, every rule is satisfied.

use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use stanchion_api::gitlab::GitlabInstanceSpec;
use stanchion_gitlab::backends::kinds::{ELASTICSEARCH, PERCONA};
use stanchion_gitlab::backends::request::BackendRequest;
use stanchion_gitlab::backends::{elasticsearch, percona, redis};
use stanchion_kernel::external::ExternalKind;
use stanchion_testkit::cluster::Cluster;

use crate::definitions;

/// All objects of an instance with this spec, for every version of PostgreSQL.
fn objects(instance: &str, spec: &GitlabInstanceSpec) -> Vec<(&'static ExternalKind, Value)> {
    let requests = BackendRequest {
        instance,
        namespace: "gl",
        spec,
        profile: None,
    };
    let mut objects = redis::objects(&requests.redis());
    objects.push((&ELASTICSEARCH, elasticsearch::object(&requests.elasticsearch())));
    objects.extend((14..=18).map(|version| (&PERCONA, percona::cluster(&requests.postgres(version)))));
    objects
}

fn smallest() -> GitlabInstanceSpec {
    serde_json::from_value(json!({ "domains": { "gitlab": "git.example.com" } })).unwrap()
}

fn fullest() -> GitlabInstanceSpec {
    let disk = json!({ "size": "100Gi", "storageClass": "fast" });
    let toleration =
        json!({ "key": "dedicated", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60 });
    serde_json::from_value(json!({
        "domains": { "gitlab": "git.example.com" },
        "postgres": { "managed": true, "topology": "ha", "pgbouncer": true, "storage": disk },
        "redis": { "managed": true, "topology": "ha", "storage": disk },
        "elasticsearch": { "managed": true, "nodes": 3, "storage": disk },
        "nodeSelector": { "pool": "data" },
        "tolerations": [toleration],
    }))
    .unwrap()
}

/// Applies an object with strict field validation.
async fn strictly(
    client: &Client,
    namespace: &str,
    kind: &ExternalKind,
    object: &Value,
) -> Result<DynamicObject, kube::Error> {
    let resource = kind.at(kind.versions[0]);
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
    let object: DynamicObject = serde_json::from_value(object.clone()).unwrap();
    let params = PatchParams::apply("stanchion").force().validation_strict();
    api.patch(&object.name_any(), &params, &Patch::Apply(&object))
        .await
}

#[tokio::test]
async fn what_is_written_is_what_the_definitions_take() {
    let cluster = Cluster::shared().await;
    cluster.install_crds(definitions::best()).await;
    let client = cluster.client().await;
    let namespace = cluster.namespace("schemas").await;
    for (instance, spec) in [("small", smallest()), ("full", fullest())] {
        for (kind, object) in objects(instance, &spec) {
            let applied = strictly(&client, &namespace, kind, &object).await;
            let applied = applied.unwrap_or_else(|error| panic!("{object:#}: {error}"));
            assert_kept(&object["spec"], &applied.data["spec"], kind.kind);
        }
    }

    let spec = smallest();
    let mut wrong = percona::cluster(
        &BackendRequest {
            instance: "wrong",
            namespace: "gl",
            spec: &spec,
            profile: None,
        }
        .postgres(17),
    );
    wrong["spec"]["backups"]["pgbackrest"]["repos"] = json!([]);
    let refused = strictly(&client, &namespace, &PERCONA, &wrong)
        .await
        .unwrap_err()
        .to_string();
    assert!(refused.contains("spec.backups"), "{refused}");
}

/// Every written field is stored; defaults may be added.
fn assert_kept(written: &Value, there: &Value, path: &str) {
    match (written, there) {
        (Value::Object(fields), Value::Object(_)) => {
            for (name, field) in fields {
                assert_kept(field, &there[name], &format!("{path}.{name}"));
            }
        }
        (Value::Array(items), Value::Array(others)) => {
            assert_eq!(items.len(), others.len(), "{path}");
            for (item, other) in items.iter().zip(others) {
                assert_kept(item, other, &format!("{path}[]"));
            }
        }
        _ => assert_eq!(written, there, "{path}"),
    }
}
