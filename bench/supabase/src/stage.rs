//! The cluster with its projects and their dependencies.

use std::path::Path;
use std::time::Duration;

use futures::{StreamExt as _, stream};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use serde_json::{Value, json};
use stanchion_api::SupabaseProject;
use stanchion_api::supabase::{Phase, SupabaseProjectStatus};
use stanchion_bench_bed::{Bed, PASSWORD};
use stanchion_testkit::process::Process;
use stanchion_testkit::s3::S3;
use tokio::time::sleep;

/// How often the state of a project is checked.
const GLANCE: Duration = Duration::from_millis(100);
/// The administrator in the projects' Secrets.
const ADMINISTRATOR: &str = "ours";

/// The dependencies of the projects.
pub(crate) struct Stage {
    pub(crate) bed: Bed,
    pub(crate) projects: Api<SupabaseProject>,
    pub(crate) deployments: Api<Deployment>,
    pub(crate) services: Api<Service>,
    s3: S3,
}

impl Stage {
    /// With a database and a Secret for each project.
    pub(crate) async fn new(projects: usize) -> Self {
        let bed = Bed::new("supabase").await;
        let (client, namespace) = (bed.cluster().client().await, bed.namespace().to_owned());
        let stage = Self {
            projects: Api::namespaced(client.clone(), &namespace),
            deployments: Api::namespaced(client.clone(), &namespace),
            services: Api::namespaced(client, &namespace),
            s3: S3::start().await,
            bed,
        };
        for number in 0..projects {
            let make = format!("CREATE DATABASE {}", database(number));
            stage.bed.server().execute("postgres", &make).await;
        }
        let secrets = (0..projects).map(|number| stage.database_secret(number));
        stage.bed.create(secrets.chain([stage.storage_secret()])).await;
        stage
    }

    /// Starts the operator.
    pub(crate) fn operator(&self, binary: &Path) -> Process {
        let anywhere = "127.0.0.1:0";
        self.bed
            .launch(binary, "stanchion")
            .args(["run", "--controllers", "supabase", "--no-webhooks"])
            .args(["--health-addr", anywhere, "--metrics-addr", anywhere])
            .spawn()
            .expect("the operator starts")
    }

    /// Creates all projects at once.
    pub(crate) async fn create(&self, projects: usize) {
        self.bed.create((0..projects).map(project)).await;
    }

    /// Waits until this many projects are running.
    pub(crate) async fn running(&self, projects: usize) {
        let runs = |object: &Value| object["status"]["phase"] == "Running";
        self.bed.converge(&project(0), projects, runs).await;
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

    /// Calls a function for some projects, a few at a time.
    pub(crate) async fn each<F: Future>(
        &self,
        numbers: impl IntoIterator<Item = usize>,
        act: impl Fn(String) -> F,
    ) {
        stream::iter(numbers)
            .map(|number| act(name(number)))
            .buffer_unordered(8)
            .for_each(async |_| {})
            .await;
    }

    fn database_secret(&self, number: usize) -> Value {
        let address = self.bed.server().address();
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
