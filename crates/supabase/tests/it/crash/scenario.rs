//! The scenarios of the crash tests, and their required end states.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use k8s_openapi::api::networking::v1::Ingress;
use serde_json::{Value, json};
use stanchion_api::SupabaseProject;
use stanchion_testenv::TestOperator;
use stanchion_testenv::crash::{CrashScenario, SqlCrashScenario};
use stanchion_testkit::faults::Faults;
use stanchion_testkit::postgres::any;
use stanchion_testkit::proxy::Proxy;

use super::servers::{self, BorrowedServer};
use crate::database_dump;
use crate::test_env::{TestEnv, is_running};

/// A scenario.
#[derive(Clone, Copy, Debug)]
pub(super) enum ProjectScenario {
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
pub(super) struct CrashRun {
    env: TestEnv,
    /// The proxy between the operator and the server.
    proxy: Proxy,
    _lent: BorrowedServer,
}

impl CrashRun {
    /// Whether every service can log in with the values of its pods.
    async fn logs_in(&self) -> Value {
        let mut all = serde_json::Map::new();
        for (child, variable) in [
            ("shop-auth", "GOTRUE_DB_DATABASE_URL"),
            ("shop-postgrest", "PGRST_DB_URI"),
            ("shop-storage", "DATABASE_URL"),
        ] {
            let pod = self.env.pod(child).await;
            let config = pod.value(variable);
            let connected = tokio_postgres::connect(config, tokio_postgres::NoTls).await;
            all.insert(child.to_owned(), json!(connected.is_ok()));
        }
        all.into()
    }
}

impl CrashScenario for ProjectScenario {
    type Run = CrashRun;

    /// Prepares the scenario with an operator that is then stopped.
    async fn set_up(&self) -> CrashRun {
        let borrowed = servers::borrow(any()).await;
        let env = TestEnv::on(borrowed.db_env()).await;
        let proxy = env.proxy().await;
        let more = match self {
            Self::Delete => json!({ "deletionPolicy": "Delete" }),
            Self::Create | Self::Change => json!({}),
        };
        env.project("shop", more).await;
        if !matches!(self, Self::Create) {
            let operator = env.operator().await;
            env.running("shop").await;
            operator.kill().await;
        }
        if matches!(self, Self::Delete) {
            env.db_env.execute(OTHERS).await;
            env.delete::<SupabaseProject>("shop").await;
        }
        if matches!(self, Self::Change) {
            let password = json!({ "data": { "database-password-storage": null } });
            env.patch::<Secret>("shop-jwt", password).await;
            let spec = json!({
                "auth": { "image": "supabase/gotrue:v9" }, "studio": { "enabled": false },
                "ingress": { "enabled": true, "host": "shop.example.com" },
            });
            env.project("shop", spec).await;
        }
        CrashRun {
            env,
            proxy,
            _lent: borrowed,
        }
    }

    async fn operator(&self, run: &CrashRun, faults: Faults) -> TestOperator {
        run.env.build(&faults).await
    }

    async fn is_gone(&self, run: &CrashRun) -> bool {
        run.env.is_absent::<SupabaseProject>("shop").await
    }

    /// Returns when the scenario has converged.
    async fn converge(&self, run: &CrashRun) {
        let env = &run.env;
        if matches!(self, Self::Delete) {
            let projects = env.api::<SupabaseProject>();
            return Box::pin(env.wait().gone(&projects, "shop")).await;
        }
        env.until("shop", is_running).await;
        if matches!(self, Self::Change) {
            let has_password = |secret: &Secret| {
                let data = secret.data.as_ref();
                data.is_some_and(|data| data.contains_key("database-password-storage"))
            };
            env.wait()
                .until(&env.api::<Secret>(), "shop-jwt", has_password)
                .await;
        }
    }

    /// The end state.
    async fn end_state(&self, run: &CrashRun) -> Value {
        let env = &run.env;
        if matches!(self, Self::Delete) {
            // The children are garbage-collected asynchronously; the database's record is removed with the rest.
            let database = database_dump::without_record(&env.db_env).await;
            return json!({
                "projects": env.normalised::<SupabaseProject>().await,
                "database": database.lines().collect::<Vec<_>>(),
                "others'": env.db_env.scalar("SELECT note FROM public.mine, storage.of_mine").await,
            });
        }
        let mut projects = env.normalised::<SupabaseProject>().await;
        for dependency in ["postgresql", "s3"] {
            projects["shop"]["status"]["dependencies"][dependency]["latencyMs"] = Value::Null;
        }
        let mut deployments = env.normalised::<Deployment>().await;
        for deployment in deployments.as_object_mut().unwrap().values_mut() {
            deployment["status"] = Value::Null;
        }
        let mut services = env.normalised::<Service>().await;
        for service in services.as_object_mut().unwrap().values_mut() {
            service["spec"]["clusterIP"] = Value::Null;
            service["spec"]["clusterIPs"] = Value::Null;
        }
        let mut all = json!({
            "projects": projects, "deployments": deployments, "services": services,
            "maps": env.normalised::<ConfigMap>().await.get("shop-kong-config"),
            "ingresses": env.normalised::<Ingress>().await,
            "keys": env.values("shop-jwt").await.keys().collect::<Vec<_>>(),
            "database": database_dump::of(&env.db_env).await.lines().collect::<Vec<_>>(),
            "logs in": run.logs_in().await,
        });
        without_hashes(&mut all);
        all
    }

    /// Masks what differs between runs.
    fn mask(&self, run: &CrashRun, text: &str) -> String {
        let CrashRun { env, proxy, .. } = run;
        text.replace(&env.namespace, "<namespace>")
            .replace(&proxy.port().to_string(), "<port>")
            .replace(&env.s3.endpoint(), "<s3>")
            .replace(env.s3.bucket(), "<bucket>")
    }
}

impl SqlCrashScenario for ProjectScenario {
    fn proxy(run: &CrashRun) -> &Proxy {
        &run.proxy
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
