//! The cluster with its projects and their dependencies.

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use kube::runtime::watcher::{Config, Event, watcher};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use stanchion_api::SupabaseProject;
use stanchion_api::supabase::{Phase, SupabaseProjectStatus};
use stanchion_bench_env::{BenchEnv, PASSWORD};
use stanchion_testkit::process::Process;
use stanchion_testkit::s3::S3;
use tokio::time::{sleep, timeout};

/// How often the state of a project is checked.
const GLANCE: Duration = Duration::from_millis(100);
/// The benchmark fails after this time without an event: the operator may have ended.
const STANDSTILL: Duration = Duration::from_mins(5);
/// The administrator in the projects' Secrets.
const ADMINISTRATOR: &str = "ours";

/// The dependencies of the projects.
pub(crate) struct BenchSetup {
    pub(crate) env: BenchEnv,
    pub(crate) projects: Api<SupabaseProject>,
    pub(crate) deployments: Api<Deployment>,
    pub(crate) services: Api<Service>,
    s3: S3,
}

impl BenchSetup {
    /// With a database and a Secret for each project.
    pub(crate) async fn new(projects: usize) -> Self {
        let env = BenchEnv::new("supabase").await;
        let (client, namespace) = (env.cluster().client().await, env.namespace().to_owned());
        let setup = Self {
            projects: Api::namespaced(client.clone(), &namespace),
            deployments: Api::namespaced(client.clone(), &namespace),
            services: Api::namespaced(client, &namespace),
            s3: S3::start().await,
            env,
        };
        for number in 0..projects {
            let make = format!("CREATE DATABASE {}", database(number));
            setup.env.server().execute("postgres", &make).await;
        }
        let secrets = (0..projects).map(|number| setup.database_secret(number));
        setup.env.create(secrets.chain([setup.storage_secret()])).await;
        setup
    }

    /// Starts the operator.
    pub(crate) fn operator(&self, binary: &Path) -> Process {
        let anywhere = "127.0.0.1:0";
        self.env
            .launch(binary, "stanchion")
            .args(["run", "--controllers", "supabase", "--no-webhooks"])
            .args(["--health-addr", anywhere, "--metrics-addr", anywhere])
            .spawn()
            .expect("the operator starts")
    }

    /// Creates all projects at once.
    pub(crate) async fn create(&self, projects: usize) {
        self.env.create((0..projects).map(project)).await;
    }

    /// Waits until this many projects are running. It uses a watch, because repeated lists of all projects would be a large
    /// part of the measured load.
    pub(crate) async fn running(&self, projects: usize) {
        let mut running = HashSet::new();
        let mut news = Box::pin(watcher(self.projects.clone(), Config::default()));
        while running.len() < projects {
            let event = timeout(STANDSTILL, news.try_next()).await;
            let event = event.unwrap_or_else(|_| {
                let now = running.len();
                panic!("{now} of {projects} run, and nothing happens: has the operator ended?")
            });
            let event = event.expect("a watch").expect("an endless watch");
            let (Event::InitApply(project) | Event::Apply(project)) = event else {
                continue;
            };
            let phase = project.status.as_ref().and_then(|status| status.phase);
            if phase == Some(Phase::Running) {
                running.insert(project.name_any());
            } else {
                running.remove(&project.name_any());
            }
        }
    }

    /// Waits until a changed project is running again.
    pub(crate) async fn settled(&self, project: &str) {
        loop {
            let found = self.projects.get(project).await.expect("a project");
            let generation = found.metadata.generation;
            let runs = |status: &SupabaseProjectStatus| {
                status.phase == Some(Phase::Running) && status.observed_generation == generation
            };
            if found.status.as_ref().is_some_and(runs) {
                return;
            }
            sleep(GLANCE).await;
        }
    }

    /// Calls a function for some projects, this many at a time.
    pub(crate) async fn each<F: Future>(
        &self,
        numbers: impl IntoIterator<Item = usize>,
        together: usize,
        act: impl Fn(String) -> F,
    ) {
        stream::iter(numbers)
            .map(|number| act(name(number)))
            .buffer_unordered(together)
            .for_each(async |_| {})
            .await;
    }

    fn database_secret(&self, number: usize) -> Value {
        let address = self.env.server().address();
        secret(
            &database(number).replace('_', "-"),
            &json!({
                "host": address.ip().to_string(), "port": address.port().to_string(), "database": database(number),
                "username": ADMINISTRATOR, "password": PASSWORD,
            }),
        )
    }

    fn storage_secret(&self) -> Value {
        secret(
            "s3",
            &json!({
                "endpoint": self.s3.endpoint(), "region": S3::REGION, "bucket": self.s3.bucket(),
                "accessKeyId": self.s3.access_key(), "secretAccessKey": self.s3.secret_key(),
            }),
        )
    }
}

/// The name of a project.
pub(crate) fn name(number: usize) -> String {
    format!("project-{number}")
}

fn database(number: usize) -> String {
    format!("db_{number}")
}

fn secret(name: &str, values: &Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name }, "stringData": values })
}

fn project(number: usize) -> Value {
    let secret = database(number).replace('_', "-");
    json!({
        "apiVersion": "supabase.strrl.dev/v1alpha1",
        "kind": "SupabaseProject",
        "metadata": { "name": name(number) },
        "spec": {
            "projectId": name(number),
            "database": { "secretRef": { "name": secret }, "sslMode": "disable" },
            "storage": { "secretRef": { "name": "s3" } },
        },
    })
}
