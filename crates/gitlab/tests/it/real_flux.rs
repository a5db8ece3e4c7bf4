//! With the real Flux and the real Helm: what a simulated release cannot show.
//!
//! `make test-real` runs these tests if source-controller and helm-controller are beside the programs of the control plane
//! and `STANCHION_THIRD_PARTY_CRDS` has their CRDs. The chart is a small one with the name and the versions of GitLab's.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use stanchion_api::gitlab::Phase;
use stanchion_gitlab::account;
use stanchion_gitlab::charts::Tenants;
use stanchion_gitlab::flux::HELM_RELEASE;
use stanchion_kernel::rbac::merge;
use stanchion_testenv::{TestNamespace, condition};
use stanchion_testkit::cluster::{Cluster, Flux, Kind};
use stanchion_testkit::files::FileServer;
use stanchion_testkit::scratch::Scratch;
use stanchion_testkit::{helm, report};
use tokio::sync::OnceCell;

use crate::definitions;
use crate::test_env::{MAP, Running, TestEnv};

/// The versions of the chart, with those of GitLab.
const CHARTS: [(&str, &str); 3] = [("8.8.7", "17.8.7"), ("8.11.8", "17.11.7"), ("9.2.8", "18.2.8")];

/// With the image `hang`, the pod never becomes ready, and so neither does the release.
const TEMPLATE: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Release.Name }}-webservice"}
spec:
  selector: {matchLabels: {app: "{{ .Release.Name }}"}}
  template:
    metadata: {labels: {app: "{{ .Release.Name }}"}}
    spec: {containers: [{name: webservice, image: "{{ .Values.testImage | default "webservice" }}"}]}
"#;

/// A cluster with Flux and a repository of charts, for all tests of this file.
struct FluxCluster {
    cluster: Cluster,
    _flux: Flux,
    helm: PathBuf,
    charts: Scratch,
    url: String,
}

impl FluxCluster {
    async fn shared() -> Result<&'static Self, String> {
        static SHARED: OnceCell<Result<FluxCluster, String>> = OnceCell::const_new();
        let shared = SHARED.get_or_init(Self::start).await;
        shared.as_ref().map_err(Clone::clone)
    }

    async fn start() -> Result<Self, String> {
        if Kind::chosen() == Kind::Sandbox {
            return Err("Flux runs on a real control plane only".to_owned());
        }
        if !definitions::are_originals() {
            return Err("STANCHION_THIRD_PARTY_CRDS is not set".to_owned());
        }
        let helm = helm::find()?;
        let cluster = Cluster::start().await;
        cluster.install_crds(stanchion_api::crds()).await;
        cluster.install_crds(definitions::best()).await;
        cluster.apply(MAP, "default").await;
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": { "name": account::ROLE }, "rules": merge(&account::release_rules()),
        });
        cluster.apply(&role.to_string(), "default").await;
        let charts = Scratch::new("stanchion-charts-").map_err(|error| error.to_string())?;
        let url = FileServer::start(charts.path()).url();
        package(&helm, charts.path(), &url)?;
        Ok(Self {
            _flux: Flux::start(&cluster)?,
            cluster,
            helm,
            charts,
            url,
        })
    }

    fn helm(&self, namespace: &str, words: &[&str]) -> String {
        let kubeconfig = self.cluster.kubeconfig_path();
        let common = [
            "--kubeconfig",
            kubeconfig.to_str().unwrap(),
            "--namespace",
            namespace,
        ];
        helm::run(&self.helm, &[words, &common].concat()).unwrap()
    }
}

/// Writes the charts and the index of the repository.
fn package(helm: &Path, folder: &Path, url: &str) -> Result<(), String> {
    let chart = folder.join("source/gitlab");
    fs::create_dir_all(chart.join("templates")).unwrap();
    fs::write(chart.join("templates/all.yaml"), TEMPLATE).unwrap();
    let folder = folder.to_str().unwrap();
    for (version, app) in CHARTS {
        let about = json!({ "apiVersion": "v2", "name": "gitlab", "version": version, "appVersion": format!("v{app}") });
        fs::write(chart.join("Chart.yaml"), about.to_string()).unwrap();
        helm::run(helm, &["package", chart.to_str().unwrap(), "-d", folder])?;
    }
    helm::run(helm, &["repo", "index", folder, "--url", url]).map(|_| ())
}

impl TestEnv {
    /// A namespace of a cluster with Flux, and an operator that may use its charts. A test without Flux is reported as
    /// skipped.
    async fn with_flux() -> Option<(Self, Running, &'static FluxCluster)> {
        let shared = match FluxCluster::shared().await {
            Ok(shared) => shared,
            Err(missing) => {
                report::skipped(&report::this_test(), &missing);
                return None;
            }
        };
        let mut env = Self::of(TestNamespace::in_cluster(&shared.cluster, "gitlab").await);
        env.tenants = Arc::new(Tenants {
            repositories: vec![shared.url.parse().unwrap()],
            ..Tenants::default()
        });
        let operator = env.operator().await;
        env.create_provided_secrets().await;
        Some((env, operator, shared))
    }

    /// The charts that Helm has installed or begun to install, the first one first.
    async fn revisions(&self) -> Vec<String> {
        let releases = ListParams::default().labels("owner=helm,name=shop");
        let mut revisions: Vec<(u32, String)> = Vec::new();
        for secret in self.secrets().list(&releases).await.unwrap() {
            let version = secret.metadata.labels.unwrap()["version"].parse().unwrap();
            revisions.push((version, secret.metadata.name.unwrap()));
        }
        revisions.sort();
        revisions.into_iter().map(|(_, name)| name).collect()
    }

    async fn has_pods(&self) -> bool {
        let deployments = self.api::<Deployment>();
        deployments.get_opt("shop-webservice").await.unwrap().is_some()
    }

    /// Every version that the status has reported as running, in order, until the instance is ready in the last one.
    async fn versions_until(&self, last: &str) -> Vec<String> {
        let seen = std::cell::RefCell::new(Vec::<String>::new());
        self.wait()
            .eventually("the instance in its last version", async || {
                let status = self
                    .instances()
                    .get("shop")
                    .await
                    .unwrap()
                    .status
                    .unwrap_or_default();
                let mut seen = seen.borrow_mut();
                if let Some(version) = status.observed_version
                    && seen.last() != Some(&version)
                {
                    seen.push(version);
                }
                status.phase == Some(Phase::Ready) && seen.last().is_some_and(|version| version == last)
            })
            .await;
        seen.into_inner()
    }
}

fn unattended(version: &str) -> Value {
    json!({ "version": version, "upgrade": { "waitForMigrations": false } })
}

#[tokio::test]
async fn flux_installs_upgrades_over_every_stop_and_uninstalls() {
    let Some((env, _operator, _)) = TestEnv::with_flux().await else {
        return;
    };
    env.instance("shop", unattended("17.8.7")).await;
    assert_eq!(env.versions_until("17.8.7").await, ["17.8.7"]);
    env.respec("shop", json!({ "version": "18.2.8" })).await;
    env.versions_until("18.2.8").await;
    let release = env.external(&HELM_RELEASE).get("shop-gitlab").await.unwrap();
    let history = release
        .data
        .pointer("/status/history")
        .unwrap()
        .as_array()
        .unwrap();
    let charts: Vec<_> = history
        .iter()
        .rev()
        .map(|entry| entry["chartVersion"].clone())
        .collect();
    assert_eq!(charts.last(), Some(&json!("9.2.8")));
    assert_eq!(
        env.revisions().await.len(),
        3,
        "the stop at 17.11.7 is one of them: {charts:?}"
    );

    env.delete("shop").await;
    env.wait().gone(&env.instances(), "shop").await;
    assert!(!env.has_pods().await);
    assert_eq!(env.revisions().await, Vec::<String>::new());
}

/// Flux ends an installation before it uninstalls. The status says so, and its way out works.
#[tokio::test]
async fn a_deletion_while_flux_installs_says_until_when_and_can_be_cut_short() {
    let Some((env, _operator, shared)) = TestEnv::with_flux().await else {
        return;
    };
    let hangs = json!({ "version": "17.8.7", "helm": { "values": { "testImage": "hang" } } });
    env.instance("shop", hangs).await;
    env.wait()
        .eventually("Flux at work", async || env.has_pods().await)
        .await;
    env.delete("shop").await;
    let waits = ("True".to_owned(), "WaitingForFlux".to_owned());
    let waiting = env
        .until("shop", |instance| {
            condition(instance, "Reconciling").as_ref() == Some(&waits)
        })
        .await;
    let status = waiting.status.unwrap();
    assert_eq!(status.phase, Some(Phase::Terminating));
    let words = status.message.unwrap();
    for part in ["Running 'install' action", "at the latest", "helm uninstall shop"] {
        assert!(words.contains(part), "{words}");
    }
    let until = words.split(", at ").nth(1).unwrap().split(' ').next().unwrap();
    let until: jiff::Timestamp = until.parse().unwrap();
    assert!(until > jiff::Timestamp::now(), "{words}");

    // What the message advises.
    let patch = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    env.external(&HELM_RELEASE)
        .patch("shop-gitlab", &PatchParams::default(), &patch)
        .await
        .unwrap();
    env.wait().gone(&env.instances(), "shop").await;
    shared.helm(&env.namespace, &["uninstall", "shop"]);
    assert!(!env.has_pods().await);
}

/// Helm installed 17.8.7 before there was an instance. Flux alone would upgrade it to 18.2.8 at once.
#[tokio::test]
async fn a_release_of_plain_helm_is_upgraded_over_every_stop() {
    let Some((env, operator, shared)) = TestEnv::with_flux().await else {
        return;
    };
    operator.kill().await;
    let chart = shared.charts.path().join("gitlab-8.8.7.tgz");
    shared.helm(&env.namespace, &["install", "shop", chart.to_str().unwrap()]);
    let _operator = env.operator().await;
    env.instance("shop", unattended("18.2.8")).await;
    let versions = env.versions_until("18.2.8").await;
    assert_eq!(versions.first().map(String::as_str), Some("17.8.7"));
    assert_eq!(env.revisions().await.len(), 3, "{versions:?}");
}
