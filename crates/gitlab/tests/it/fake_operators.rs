//! The simulated operators of the sandbox make each object ready as the controller expects it.

use std::time::Duration;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use stanchion_api::gitlab::{GitlabInstanceSpec, Topology};
use stanchion_gitlab::backends::kinds::{ELASTICSEARCH, PERCONA};
use stanchion_gitlab::backends::request::BackendRequest;
use stanchion_gitlab::backends::{elasticsearch, percona, redis};
use stanchion_sandbox::fake_operators::FakeOperators;
use stanchion_testkit::cluster::Cluster;
use stanchion_testkit::wait;
use tokio::sync::OnceCell;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::definitions;

const WAIT_TIMEOUT: Duration = Duration::from_mins(2);

/// A namespace with simulated operators, until it is dropped.
struct Stage {
    client: Client,
    namespace: String,
    playing: JoinSet<()>,
    stop: CancellationToken,
}

impl Stage {
    async fn new() -> Self {
        static CRDS: OnceCell<()> = OnceCell::const_new();
        let cluster = Cluster::shared().await;
        CRDS.get_or_init(async || cluster.install_crds(definitions::best()).await)
            .await;
        let (client, namespace) = (cluster.client().await, cluster.namespace("players").await);
        let stop = CancellationToken::new();
        let charts = |chart: &str| match chart {
            "8.11.8" => Some("17.11.7".to_owned()),
            "9.2.8" => Some("18.2.8".to_owned()),
            _ => None,
        };
        let playing = FakeOperators::new(client.clone())
            .within(&namespace)
            .charts(charts)
            .start(&stop);
        Self {
            client,
            namespace,
            playing,
            stop,
        }
    }

    async fn apply(&self, resource: &ApiResource, object: &Value) -> Api<DynamicObject> {
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), &self.namespace, resource);
        let object: DynamicObject = serde_json::from_value(object.clone()).unwrap();
        let params = PatchParams::apply("test").force().validation_strict();
        api.patch(&object.name_any(), &params, &Patch::Apply(&object))
            .await
            .unwrap();
        api
    }

    fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Stops the simulated operators, which must end by themselves.
    async fn end(mut self) {
        self.stop.cancel();
        while let Some(ended) = self.playing.join_next().await {
            ended.unwrap();
        }
    }
}

fn spec(mut fields: Value) -> GitlabInstanceSpec {
    fields["domains"] = json!({ "gitlab": "git.example.com" });
    serde_json::from_value(fields).unwrap()
}

#[tokio::test]
async fn a_database_becomes_ready_and_its_password_stays() {
    let stage = Stage::new().await;
    let spec = spec(json!({ "postgres": { "topology": "ha", "pgbouncer": true } }));
    let requests = BackendRequest {
        instance: "shop",
        namespace: &stage.namespace,
        spec: &spec,
        profile: None,
    };
    let mut cluster = percona::cluster(&requests.postgres(17));
    let resource = PERCONA.at("v2");
    let api = stage.apply(&resource, &cluster).await;
    wait::until(&api, "shop-pg", WAIT_TIMEOUT, |cluster| {
        percona::readiness(cluster).is_ready()
    })
    .await;
    let secrets: Api<Secret> = stage.api();
    let before = secrets.get(&percona::secret_name("shop")).await.unwrap();
    let psql = percona::psql(&before, true).unwrap();
    assert_eq!(
        psql.address.host,
        format!("shop-pg-pgbouncer.{}.svc", stage.namespace)
    );
    assert_eq!(
        (psql.database.as_str(), psql.username.as_str()),
        ("gitlabhq_production", "gitlab")
    );

    cluster["spec"]["instances"][0]["replicas"] = json!(5);
    stage.apply(&resource, &cluster).await;
    let grown = |cluster: &DynamicObject| {
        percona::readiness(cluster).is_ready() && cluster.data["status"]["postgres"]["ready"] == 5
    };
    wait::until(&api, "shop-pg", WAIT_TIMEOUT, grown).await;
    assert_eq!(
        secrets.get(&percona::secret_name("shop")).await.unwrap().data,
        before.data
    );
    stage.end().await;
}

#[tokio::test]
async fn a_redis_of_either_topology_becomes_ready() {
    let stage = Stage::new().await;
    for (instance, topology) in [("one", Topology::Standalone), ("many", Topology::Ha)] {
        let spec = spec(json!({ "redis": { "topology": topology } }));
        let requests = BackendRequest {
            instance,
            namespace: &stage.namespace,
            spec: &spec,
            profile: None,
        };
        for (kind, object) in redis::objects(&requests.redis()) {
            stage.apply(&kind.at("v1beta2"), &object).await;
        }
        let sets: Api<StatefulSet> = stage.api();
        for name in redis::stateful_sets(instance, topology) {
            let ready = |set: &StatefulSet| redis::readiness(&set.name_any(), Some(set)).is_ready();
            wait::until(&sets, &name, WAIT_TIMEOUT, ready).await;
        }
    }
    stage.end().await;
}

#[tokio::test]
async fn an_elasticsearch_becomes_ready() {
    let stage = Stage::new().await;
    let spec = spec(json!({}));
    let requests = BackendRequest {
        instance: "shop",
        namespace: &stage.namespace,
        spec: &spec,
        profile: None,
    };
    let object = elasticsearch::object(&requests.elasticsearch());
    let api = stage.apply(&ELASTICSEARCH.at("v1"), &object).await;
    wait::until(&api, "shop-es", WAIT_TIMEOUT, |object| {
        elasticsearch::readiness(object).is_ready()
    })
    .await;
    let address = elasticsearch::address("shop", &stage.namespace);
    let secret = stage.api::<Secret>().get(&address.password_secret).await.unwrap();
    assert!(secret.data.unwrap().contains_key("elastic"));
    stage.end().await;
}

fn release(version: &str) -> Value {
    json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2",
        "kind": "HelmRelease",
        "metadata": { "name": "shop" },
        "spec": {
            "interval": "10m",
            "chart": { "spec": {
                "chart": "gitlab",
                "version": version,
                "sourceRef": { "kind": "HelmRepository", "name": "shop" },
            } },
        },
    })
}

/// The reason of the condition `Ready`, once it is for the current generation.
fn verdict(release: &DynamicObject) -> Option<String> {
    let status = &release.data["status"];
    let current = status["observedGeneration"].as_i64() == release.metadata.generation;
    let conditions = status["conditions"].as_array()?;
    let ready = conditions.iter().find(|condition| condition["type"] == "Ready")?;
    assert!(ready["message"].as_str()?.starts_with("simulated"), "{ready}");
    ready["reason"].as_str().filter(|_| current).map(str::to_owned)
}

#[tokio::test]
async fn a_release_is_installed_upgraded_and_taken_away() {
    let stage = Stage::new().await;
    let kind = GroupVersionKind::gvk("helm.toolkit.fluxcd.io", "v2", "HelmRelease");
    let resource = ApiResource::from_gvk(&kind);
    let api = stage.apply(&resource, &release("8.11.8")).await;
    for (version, reason) in [
        ("8.11.8", "InstallSucceeded"),
        ("9.2.8", "UpgradeSucceeded"),
        ("7.0.0", "ArtifactFailed"),
    ] {
        stage.apply(&resource, &release(version)).await;
        let said = |release: &DynamicObject| {
            release.data["spec"]["chart"]["spec"]["version"] == version
                && verdict(release).as_deref() == Some(reason)
        };
        wait::until(&api, "shop", WAIT_TIMEOUT, said).await;
    }
    let history = api.get("shop").await.unwrap().data["status"]["history"].clone();
    let line = |number: usize| {
        let entry = &history[number];
        [
            &entry["version"],
            &entry["status"],
            &entry["chartVersion"],
            &entry["appVersion"],
        ]
        .map(Value::to_string)
        .join(" ")
    };
    assert_eq!(line(0), r#"2 "deployed" "9.2.8" "18.2.8""#);
    assert_eq!(line(1), r#"1 "superseded" "8.11.8" "17.11.7""#);

    let release = api.get("shop").await.unwrap();
    assert_eq!(release.finalizers(), ["finalizers.fluxcd.io"]);
    api.delete("shop", &DeleteParams::default()).await.unwrap();
    wait::gone(&api, "shop", WAIT_TIMEOUT).await;
    stage.end().await;
}

#[tokio::test]
async fn a_repository_becomes_ready() {
    let stage = Stage::new().await;
    let kind = GroupVersionKind::gvk("source.toolkit.fluxcd.io", "v1", "HelmRepository");
    let resource = ApiResource::from_gvk_with_plural(&kind, "helmrepositories");
    let repository = json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1",
        "kind": "HelmRepository",
        "metadata": { "name": "shop" },
        "spec": { "url": "https://charts.example.com", "interval": "1h" },
    });
    let api = stage.apply(&resource, &repository).await;
    wait::until(&api, "shop", WAIT_TIMEOUT, |object| {
        verdict(object).as_deref() == Some("Succeeded")
    })
    .await;
    stage.end().await;
}
