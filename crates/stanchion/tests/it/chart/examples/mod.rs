//! A release of the previous chart, every example, an upgrade to this chart, a rollback and an uninstallation; with the
//! program in place of the pods, with exactly their arguments and their `ServiceAccount`.

mod expected;
mod permissions;
mod previous;
mod running;
mod servers;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use stanchion_sandbox::fake_operators::{DEFINITIONS, FakeOperators};
use stanchion_testkit::cluster::{Cluster, User};
use stanchion_testkit::operator_log::OperatorLog;
use stanchion_testkit::postgres::{Version, versions};
use stanchion_testkit::scratch::Scratch;
use stanchion_testkit::{port, report, wait};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::expected::Expected;
use self::servers::ExampleServers;
use super::install::{NAMESPACE, arguments, on};
use super::{chart, documents, helm, kubectl};
use crate::operator::Operator;
use crate::users::UrlFile;

/// Seven Supabases with ten Deployments each, on a real control plane on a busy machine.
const WAIT_TIMEOUT: Duration = Duration::from_mins(6);

/// The values of the release: what the examples say about the operator's default server.
const VALUES: [&str; 2] = [
    "--set",
    "replicas=1,defaultInstance.secretName=stanchion-postgres,defaultInstance.roles={*-group}",
];

/// The CRD of `CloudNativePG`, reduced to what an example needs: nothing here runs its clusters.
const CLOUDNATIVEPG: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: clusters.postgresql.cnpg.io}
spec:
  group: postgresql.cnpg.io
  names: {kind: Cluster, plural: clusters}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
";

/// The files, by directory and name: `postgresuser-minimal`. Those of the sandbox come first: their version map is a part
/// of the other one.
fn files() -> Vec<(String, String)> {
    let folder = chart().join("../../examples");
    let mut files = Vec::new();
    for kind in std::fs::read_dir(folder).unwrap() {
        let kind = kind.unwrap().path();
        for file in std::fs::read_dir(&kind).unwrap() {
            let file = file.unwrap().path();
            let word = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
            let text = std::fs::read_to_string(&file).unwrap();
            files.push((format!("{}-{}", word(&kind), word(&file)), text));
        }
    }
    files.sort_by_key(|(name, _)| (!name.starts_with("sandbox-"), name.clone()));
    assert!(files.len() >= 25, "{files:?}");
    files
}

/// A cluster with the CRDs and the simulated operators that examples use.
struct Stage {
    cluster: Cluster,
    servers: ExampleServers,
    /// The objects of the examples, each with the namespace of its file.
    objects: Vec<(String, Value)>,
    expected: Vec<Expected>,
    /// The namespaces of the examples.
    namespaces: Vec<String>,
    url: UrlFile,
    authorities: PathBuf,
    _playing: JoinSet<()>,
}

impl Stage {
    async fn new() -> Self {
        let files = files();
        let servers = ExampleServers::start(&files).await;
        let cluster = Cluster::start().await;
        let client = cluster.client().await;
        let others = std::env::var_os("STANCHION_THIRD_PARTY_CRDS").map_or_else(
            || DEFINITIONS.map(str::to_owned).to_vec(),
            |folder| published(Path::new(&folder)),
        );
        for crds in others.iter().map(String::as_str).chain([CLOUDNATIVEPG]) {
            let crds: Vec<_> = serde_saphyr::from_multiple(crds).unwrap();
            cluster.install_crds(crds).await;
        }
        let charts = charts(&files);
        let playing = FakeOperators::new(client.clone())
            .charts(move |chart| charts.get(chart).cloned())
            .start(&CancellationToken::new());
        let mut namespaces: Vec<String> = files.iter().map(|(name, _)| name.clone()).collect();
        namespaces.extend(["app", "billing", "databases", "shop"].map(str::to_owned));
        for name in namespaces.iter().map(String::as_str).chain([NAMESPACE]) {
            let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
            cluster.apply(&namespace.to_string(), name).await;
        }
        let mut objects = Vec::new();
        for (name, text) in &files {
            objects.extend(
                servers
                    .required(name)
                    .into_iter()
                    .map(|object| (name.clone(), object)),
            );
            for mut object in documents(text) {
                servers.localise(name, &mut object);
                objects.push((name.clone(), object));
            }
        }
        Self {
            url: UrlFile::new(&servers.default.url("postgres")),
            authorities: servers.authorities(),
            expected: objects
                .iter()
                .filter_map(|(namespace, object)| Expected::of(&client, object, namespace))
                .collect(),
            objects,
            cluster,
            servers,
            namespaces,
            _playing: playing,
        }
    }

    /// The program with the arguments of the release's pods.
    async fn operator(&self, user: &User) -> Operator {
        let webhooks = port::free();
        let reached = [
            format!("--webhook-addr=127.0.0.1:{webhooks}"),
            format!("--webhook-url=https://127.0.0.1:{webhooks}"),
        ];
        let words = arguments(&self.cluster).await;
        let words: Vec<&str> = words
            .iter()
            .chain(&reached)
            .map(String::as_str)
            .chain(self.url.arguments())
            .collect();
        let variables: [(&str, &OsStr); 1] = [("SSL_CERT_FILE", self.authorities.as_os_str())];
        let operator = Operator::start_with(user.kubeconfig_path(), &words, &variables);
        operator.ready().await;
        operator
            .wait_for("the webhooks to be registered", async || {
                operator.log().contains("webhooks registered")
            })
            .await;
        operator
    }

    /// Applies every example in a namespace of its own, unless it names one.
    async fn apply(&self) {
        for (namespace, object) in &self.objects {
            self.cluster.apply(&object.to_string(), namespace).await;
        }
    }

    /// Approves the plan of the example that waits for it, as its comment says.
    async fn approve(&self, operator: &Operator) {
        let place = ["-n", "postgrespolicy-approval"];
        let plan = operator
            .wait_for("a plan", async || {
                let words = [&place[..], &["get", "pgplan", "-o", "name"]].concat();
                let names = kubectl(&self.cluster)
                    .run(&words)
                    .await
                    .map_err(|error| error.to_string())?;
                names
                    .lines()
                    .next()
                    .map(str::to_owned)
                    .ok_or_else(|| "no plan".to_owned())
            })
            .await;
        let words = [&place[..], &["annotate", &plan, "pgroles.io/approved=true"]].concat();
        kubectl(&self.cluster).run(&words).await.unwrap();
    }

    /// Waits until every object is ready.
    async fn ready(&self, log: &OperatorLog) {
        wait::within(WAIT_TIMEOUT)
            .showing(log)
            .eventually("every example to be ready", async || {
                let mut missing = Vec::new();
                for expected in &self.expected {
                    missing.extend(expected.missing().await);
                }
                if missing.is_empty() {
                    Ok(())
                } else {
                    Err(missing.join("\n"))
                }
            })
            .await;
    }

    /// Waits until a new process has looked at every object.
    async fn looked_at(&self, operator: &Operator) {
        let kinds = [
            ("user", "PostgresUser"),
            ("policy", "PostgresPolicy"),
            ("supabase", "SupabaseProject"),
            ("gitlab", "GitlabInstance"),
        ];
        for (controller, kind) in kinds {
            let number = self
                .expected
                .iter()
                .filter(|expected| expected.kind == kind)
                .count();
            operator
                .wait_for("a look at every object", async || {
                    let (_, text) = operator.get("metrics", "/metrics").await.ok_or("no metrics")?;
                    let start = format!("controller_runtime_reconcile_total{{controller=\"{controller}\"");
                    let counts = text.lines().filter(|line| line.starts_with(&start));
                    let counts = counts.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
                    let done: f64 = counts.sum();
                    let busy = format!("controller_runtime_active_workers{{controller=\"{controller}\"}} 0");
                    let rests = text.lines().any(|line| line == busy);
                    #[allow(clippy::cast_precision_loss, reason = "a few objects")]
                    if done >= number as f64 && rests {
                        Ok(())
                    } else {
                        Err(format!("{controller}: {done} of {number}, at rest: {rests}"))
                    }
                })
                .await;
        }
    }
}

/// The published CRDs of a directory; of several versions of a kind, the newest, which has the last name.
fn published(folder: &Path) -> Vec<String> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "yaml"))
        .collect();
    files.sort();
    let kind = |path: &PathBuf| {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        name.rsplit_once('_')
            .map(|(kind, _)| kind.to_owned())
            .unwrap_or(name)
    };
    let newest: BTreeMap<String, PathBuf> = files.into_iter().map(|file| (kind(&file), file)).collect();
    let read = |path: PathBuf| std::fs::read_to_string(path).unwrap();
    newest.into_values().map(read).collect()
}

/// The version that each chart of GitLab installs, from the version maps.
fn charts(files: &[(String, String)]) -> BTreeMap<String, String> {
    let mut charts = BTreeMap::new();
    for object in files.iter().flat_map(|(_, text)| documents(text)) {
        for (version, entry) in object["spec"]["versions"].as_object().into_iter().flatten() {
            if let Some(chart) = entry["chartVersion"].as_str() {
                charts.insert(chart.to_owned(), version.clone());
            }
        }
    }
    charts
}

#[tokio::test]
async fn every_example_is_ready_and_survives_an_upgrade_a_rollback_and_an_uninstallation() {
    let Some(helm) = helm("every_example_is_ready") else {
        return;
    };
    if versions().last().is_none_or(|newest| *newest < Version::V16) {
        report::skipped(
            "chart::every_example_is_ready",
            "an example needs PostgreSQL 16 or later",
        );
        return;
    }
    let scratch = Scratch::new("stanchion-previous-").unwrap();
    let previous = match previous::unpack(&chart().join("../.."), &scratch) {
        Ok(previous) => previous,
        Err(missing) => {
            let why = missing.why(std::env::var_os("GITHUB_ACTIONS").is_some());
            report::skipped("chart::every_example_is_ready", why);
            return;
        }
    };
    let stage = Stage::new().await;
    let audit = stage.cluster.audit();
    let install = ["install", "stanchion", previous.to_str().unwrap()];
    on(&stage.cluster, &helm, &[&install[..], &VALUES].concat());
    let established = [
        "wait",
        "crd",
        "--all",
        "--for=condition=Established",
        "--timeout=120s",
    ];
    kubectl(&stage.cluster).run(&established).await.unwrap();
    let user = stage.cluster.log_in(NAMESPACE, "stanchion").await;

    let operator = stage.operator(&user).await;
    stage.apply().await;
    stage.approve(&operator).await;
    stage.ready(&operator.output()).await;
    running::scaled(&stage.cluster).await;
    stage.ready(&operator.output()).await;
    stage.looked_at(&operator).await;
    operator.stop().await;
    let before = running::objects(&stage.cluster, &stage.namespaces).await;
    assert!(
        before.keys().filter(|key| key.starts_with("Pod ")).count() > 50,
        "{:?}",
        before.keys()
    );

    // The new chart, and a new process with its arguments and its permissions.
    let since = stage.cluster.audit();
    let chart = chart();
    let upgrade = ["upgrade", "stanchion", chart.to_str().unwrap()];
    on(&stage.cluster, &helm, &[&upgrade[..], &VALUES].concat());
    let operator = stage.operator(&user).await;
    stage.looked_at(&operator).await;
    stage.ready(&operator.output()).await;
    running::same(
        &before,
        &running::objects(&stage.cluster, &stage.namespaces).await,
        "after the upgrade",
    );
    running::no_writes(since.requests().await.of_user(user.name()), "after the upgrade");

    on(&stage.cluster, &helm, &["rollback", "stanchion", "1"]);
    operator.stop().await;
    let operator = stage.operator(&user).await;
    stage.looked_at(&operator).await;
    running::same(
        &before,
        &running::objects(&stage.cluster, &stage.namespaces).await,
        "after the rollback",
    );
    running::no_writes(since.requests().await.of_user(user.name()), "after the rollback");
    on(&stage.cluster, &helm, &[&upgrade[..], &VALUES].concat());
    let log = operator.log();
    operator.stop().await;

    let requests = audit.requests().await.of_user(user.name());
    let forbidden = requests.clone().forbidden();
    assert_eq!(forbidden.count(), 0, "{forbidden:#?}\n{log}");
    permissions::are_used(&helm, requests.list());

    // Neither CRDs, nor objects, nor what was made for them goes with the release.
    on(&stage.cluster, &helm, &["uninstall", "stanchion"]);
    running::same(
        &before,
        &running::objects(&stage.cluster, &stage.namespaces).await,
        "after the uninstallation",
    );
    for expected in &stage.expected {
        let object = expected.api.get(&expected.name).await.unwrap();
        assert!(object.metadata.deletion_timestamp.is_none(), "{object:?}");
    }
    stage
        .servers
        .logs_in(&stage.cluster, "sandbox-postgresuser", "orders-db")
        .await
        .unwrap();
    let tables = stage
        .servers
        .demo
        .scalar("shop", "SELECT count(*) FROM _stanchion.steps")
        .await;
    assert!(tables.is_some_and(|number| number != "0"));
}
