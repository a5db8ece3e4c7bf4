//! The scenarios of the crash tests, and their required end states.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use k8s_openapi::api::networking::v1::Ingress;
use serde_json::{Value, json};
use stanchion_api::SupabaseProject;
use stanchion_testkit::crash::{Scenario, objects};
use stanchion_testkit::faults::Faults;
use stanchion_testkit::postgres::any;
use stanchion_testkit::proxy::Proxy;
use stanchion_testkit::running::Latest;

use super::servers::{self, Lent};
use crate::stage::{Stage, is_running};
use crate::state;

/// A scenario.
#[derive(Clone, Copy, Debug)]
pub(super) enum Story {
    /// Creates a project and prepares its database.
    Create,
    /// Changes an image, removes a component, replaces a password, and adds an Ingress.
    Change,
    /// Deletes a project that removes what it created in the database, while somebody else has tables there.
    Delete,
}

/// Somebody else's objects in the database: one table beside those of the project, one among them.
const OTHERS: &str = "CREATE TABLE public.mine (note text); INSERT INTO public.mine VALUES ('kept'); \
     CREATE TABLE storage.of_mine (id int); INSERT INTO storage.of_mine VALUES (1)";

/// One run of a scenario, with its own namespace and server.
pub(super) struct Told {
    stage: Stage,
    /// The proxy between the operator and the server.
    pub(super) proxy: Proxy,
    operator: Latest,
    _lent: Lent,
}

impl Told {
    /// Whether the project is gone.
    async fn is_gone(&self) -> bool {
        let projects = self.stage.api::<SupabaseProject>();
        projects.get_opt("shop").await.unwrap().is_none()
    }

    /// Whether every service can log in with the values of its pods.
    async fn logs_in(&self) -> Value {
        let mut all = serde_json::Map::new();
        for (child, variable) in [
            ("shop-auth", "GOTRUE_DB_DATABASE_URL"),
            ("shop-postgrest", "PGRST_DB_URI"),
            ("shop-storage", "DATABASE_URL"),
        ] {
            let pod = self.stage.pod(child).await;
            let config = pod.value(variable);
            let connected = tokio_postgres::connect(config, tokio_postgres::NoTls).await;
            all.insert(child.to_owned(), json!(connected.is_ok()));
        }
        all.into()
    }
}

impl Scenario for Story {
    type Run = Told;

    /// Prepares the scenario with an operator that is then stopped.
    async fn set_up(&self) -> Told {
        let lent = servers::lend(any()).await;
        let stage = Stage::on(lent.bed()).await;
        let proxy = stage.proxy().await;
        let more = match self {
            Self::Delete => json!({ "deletionPolicy": "Delete" }),
            Self::Create | Self::Change => json!({}),
        };
        stage.project("shop", more).await;
        if !matches!(self, Self::Create) {
            let operator = stage.operator().await;
            stage.running("shop").await;
            operator.kill().await;
        }
        if matches!(self, Self::Delete) {
            stage.bed.execute(OTHERS).await;
            stage.delete::<SupabaseProject>("shop").await;
        }
        if matches!(self, Self::Change) {
            let password = json!({ "data": { "database-password-storage": null } });
            stage.patch::<Secret>("shop-jwt", password).await;
            let spec = json!({
                "auth": { "image": "supabase/gotrue:v9" }, "studio": { "enabled": false },
                "ingress": { "enabled": true, "host": "shop.example.com" },
            });
            stage.project("shop", spec).await;
        }
        Told {
            stage,
            proxy,
            operator: Latest::new("supabase"),
            _lent: lent,
        }
    }

    async fn operate(&self, told: &Told, faults: Faults) {
        let (operator, metrics) = told.stage.build(&faults).await;
        let _now = told.operator.runs(move || metrics.encode());
        operator.run().await;
    }

    /// A deleted project is not reconciled.
    async fn has_looked(&self, told: &Told) -> bool {
        told.operator.has_looked() || told.is_gone().await
    }

    /// Returns when the scenario has converged.
    async fn converge(&self, told: &Told) {
        let stage = &told.stage;
        if matches!(self, Self::Delete) {
            let projects = stage.api::<SupabaseProject>();
            return Box::pin(stage.wait().gone(&projects, "shop")).await;
        }
        stage.until("shop", is_running).await;
        if matches!(self, Self::Change) {
            let has_password = |secret: &Secret| {
                let data = secret.data.as_ref();
                data.is_some_and(|data| data.contains_key("database-password-storage"))
            };
            stage
                .wait()
                .until(&stage.api::<Secret>(), "shop-jwt", has_password)
                .await;
        }
    }

    /// The end state.
    async fn end_state(&self, told: &Told) -> Value {
        let stage = &told.stage;
        let (client, namespace) = (|| stage.client.clone(), &stage.namespace);
        if matches!(self, Self::Delete) {
            // The children are garbage-collected asynchronously; the database's record is removed with the rest.
            let database = state::without_record(&stage.bed).await;
            return json!({
                "projects": objects::<SupabaseProject>(client(), namespace).await,
                "database": database.lines().collect::<Vec<_>>(),
                "others'": stage.bed.scalar("SELECT note FROM public.mine, storage.of_mine").await,
            });
        }
        let mut projects = objects::<SupabaseProject>(client(), namespace).await;
        for dependency in ["postgresql", "s3"] {
            projects["shop"]["status"]["dependencies"][dependency]["latencyMs"] = Value::Null;
        }
        let mut deployments = objects::<Deployment>(client(), namespace).await;
        for deployment in deployments.as_object_mut().unwrap().values_mut() {
            deployment["status"] = Value::Null;
        }
        let mut services = objects::<Service>(client(), namespace).await;
        for service in services.as_object_mut().unwrap().values_mut() {
            service["spec"]["clusterIP"] = Value::Null;
            service["spec"]["clusterIPs"] = Value::Null;
        }
        let mut all = json!({
            "projects": projects, "deployments": deployments, "services": services,
            "maps": objects::<ConfigMap>(client(), namespace).await.get("shop-kong-config"),
            "ingresses": objects::<Ingress>(client(), namespace).await,
            "keys": stage.values("shop-jwt").await.keys().collect::<Vec<_>>(),
            "database": state::of(&stage.bed).await.lines().collect::<Vec<_>>(),
            "logs in": told.logs_in().await,
        });
        without_hashes(&mut all);
        all
    }

    /// Masks what differs between runs.
    fn mask(&self, told: &Told, text: &str) -> String {
        let Told { stage, proxy, .. } = told;
        text.replace(&stage.namespace, "<namespace>")
            .replace(&proxy.port().to_string(), "<port>")
            .replace(&stage.s3.endpoint(), "<s3>")
            .replace(stage.s3.bucket(), "<bucket>")
    }
}

/// Removes hashes, which depend on ports and keys.
fn without_hashes(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                if name.ends_with("-hash") || name == "stanchion.dev/intent" {
                    *field = Value::Null;
                }
                without_hashes(field);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(without_hashes),
        _ => {}
    }
}
