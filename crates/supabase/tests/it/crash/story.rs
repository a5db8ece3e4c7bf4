//! What an operator may be in the middle of, and what must be so in the end.

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

/// What is going on.
#[derive(Clone, Copy, Debug)]
pub(super) enum Story {
    /// A project is made, and its database prepared.
    Create,
    /// One component gets another image, one goes, one gets a new password, and there is an Ingress now.
    Change,
    /// A project goes, and takes with it what it made in the database; somebody has tables there meanwhile.
    Delete,
}

/// What somebody else has in the database: one table beside what the project made, one amid it.
const OTHERS: &str = "CREATE TABLE public.mine (note text); INSERT INTO public.mine VALUES ('kept'); \
     CREATE TABLE storage.of_mine (id int); INSERT INTO storage.of_mine VALUES (1)";

/// One telling of a story, with a namespace and a server to itself.
pub(super) struct Told {
    stage: Stage,
    /// Between the operator and the server.
    pub(super) proxy: Proxy,
    operator: Latest,
    _lent: Lent,
}

impl Told {
    /// Whether there is no project any more.
    async fn is_gone(&self) -> bool {
        let projects = self.stage.api::<SupabaseProject>();
        projects.get_opt("shop").await.unwrap().is_none()
    }

    /// Whether everybody can log in with what the pods were given.
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

    /// Everything up to the moment that matters; the operator that brought it about is gone.
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

    /// Nobody looks at a project that is gone.
    async fn has_looked(&self, told: &Told) -> bool {
        told.operator.has_looked() || told.is_gone().await
    }

    /// Returns when the story has come to its end.
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

    /// All there is in the end.
    async fn end_state(&self, told: &Told) -> Value {
        let stage = &told.stage;
        let (client, namespace) = (|| stage.client.clone(), &stage.namespace);
        if matches!(self, Self::Delete) {
            // The children go by ownership, in their own time; the database's record went with the rest.
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

    /// Without what differs from telling to telling.
    fn mask(&self, told: &Told, text: &str) -> String {
        let Told { stage, proxy, .. } = told;
        text.replace(&stage.namespace, "<namespace>")
            .replace(&proxy.port().to_string(), "<port>")
            .replace(&stage.s3.endpoint(), "<s3>")
            .replace(stage.s3.bucket(), "<bucket>")
    }
}

/// Hashes are of other ports and other keys each time.
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
