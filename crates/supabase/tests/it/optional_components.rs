//! Optional components: in the cluster and in the database, only if the spec names them.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use serde_json::{Value, json};
use stanchion_api::SupabaseProject;
use stanchion_api::supabase::Phase;
use stanchion_supabase::database::Login;
use stanchion_testkit::postgres::Version;

use crate::database_env::DatabaseEnv;
use crate::test_env::{TestEnv, condition};

const OPTIONAL: [(&str, &str); 3] = [
    ("functions", "FunctionsReady"),
    ("pooler", "PoolerReady"),
    ("analytics", "AnalyticsReady"),
];

fn everything() -> Value {
    json!({
        "functions": { "source": { "configMap": { "name": "code" } } }, "pooler": {}, "analytics": {},
    })
}

async fn code(env: &TestEnv, text: &str) {
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "code" },
        "data": { "hello.ts": text },
    });
    env.apply::<ConfigMap>("code", &map).await;
}

/// The passwords of the logins, as pods get them.
async fn passwords(env: &TestEnv) -> BTreeMap<String, String> {
    let secret = env.api::<Secret>().get("shop-jwt").await.unwrap();
    let data = secret.data.unwrap().into_iter();
    data.filter_map(|(key, value)| {
        let name = key.strip_prefix("database-password-")?.to_owned();
        Some((name, String::from_utf8(value.0).unwrap()))
    })
    .collect()
}

async fn what_was_left_out(env: &TestEnv) -> Vec<String> {
    let roles = "SELECT rolname FROM pg_roles WHERE rolname IN ('supabase_analytics_admin', 'supabase_pooler_admin', \
                 'pgbouncer') UNION ALL SELECT datname FROM pg_database WHERE datname = '_supabase' UNION ALL \
                 SELECT nspname FROM pg_namespace WHERE nspname = 'pgbouncer' ORDER BY 1";
    env.db_env.column(roles).await
}

async fn come_and_go(version: Version) {
    let env = TestEnv::on(DatabaseEnv::new(version).await).await;
    let _operator = env.operator().await;
    env.project("shop", json!({})).await;
    let project = env.running("shop").await;
    assert_eq!(what_was_left_out(&env).await, [""; 0]);
    for (field, kind) in OPTIONAL {
        assert_eq!(condition(&project, kind), None, "{kind}");
        assert!(!project.status.as_ref().unwrap().components.contains_key(field));
    }

    code(&env, "one").await;
    env.project("shop", everything()).await;
    let project = env.running("shop").await;
    for (field, kind) in OPTIONAL {
        let found = condition(&project, kind).map(|(truth, _)| truth);
        assert_eq!(found.as_deref(), Some("True"), "{kind}");
        assert!(project.status.as_ref().unwrap().components[field].ready);
        env.api::<Service>().get(&format!("shop-{field}")).await.unwrap();
    }
    let routes = env.api::<ConfigMap>().get("shop-kong-config").await.unwrap();
    let routes = &routes.data.unwrap()["kong.yml"];
    assert!(routes.contains("http://shop-functions:9000/"), "{routes}");

    // Each logs in with the values of its pod, and has its own schema.
    let passwords = passwords(&env).await;
    for (login, database, statement) in [
        (
            Login::Functions,
            "shop",
            "SET ROLE service_role; SELECT * FROM information_schema.tables",
        ),
        (
            Login::Analytics,
            "_supabase",
            "CREATE TABLE _analytics.logs (id int)",
        ),
        (
            Login::Pooler,
            "_supabase",
            "CREATE TABLE _supavisor.tenants (id int)",
        ),
        (
            Login::PoolerAuth,
            "shop",
            "SELECT * FROM pgbouncer.get_auth('authenticator')",
        ),
    ] {
        let name = format!("{login:?}")
            .to_lowercase()
            .replace("poolerauth", "pooler-auth");
        let session = env
            .db_env
            .server
            .connect(login.role(), &passwords[&name], database);
        let session = session.await.unwrap_or_else(|error| panic!("{login:?}: {error}"));
        session.batch_execute(statement).await.unwrap();
    }

    // They are removed, and their data in the database stays: it may be needed again.
    let gone = json!({ "functions": null, "pooler": null, "analytics": null });
    env.patch::<SupabaseProject>("shop", json!({ "spec": gone }))
        .await;
    for (field, _) in OPTIONAL {
        let name = format!("shop-{field}");
        env.wait().gone(&env.api::<Deployment>(), &name).await;
    }
    let project = env.running("shop").await;
    assert_eq!(condition(&project, "PoolerReady"), None);
    assert_eq!(what_was_left_out(&env).await.len(), 5);
}

#[tokio::test]
async fn they_come_and_go_on_15() {
    Box::pin(come_and_go(Version::V15)).await;
}

#[tokio::test]
async fn they_come_and_go_on_18() {
    Box::pin(come_and_go(Version::V18)).await;
}

#[tokio::test]
async fn code_that_is_missing_is_named_and_code_that_changes_rolls() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    let functions = json!({ "functions": { "source": { "configMap": { "name": "code" } } } });
    env.project("shop", functions).await;
    let waiting = |project: &SupabaseProject| {
        project.status.as_ref().and_then(|status| status.phase) == Some(Phase::Failed)
    };
    let project = env.until("shop", waiting).await;
    assert_eq!(
        project.status.unwrap().message.as_deref(),
        Some("Dependency validation failed: functions config map 'code' not found")
    );
    code(&env, "one").await;
    env.running("shop").await;
    let deployments = env.api::<Deployment>();
    let before = deployments
        .get("shop-functions")
        .await
        .unwrap()
        .metadata
        .generation;
    code(&env, "two").await;
    let is_rolled = |deployment: &Deployment| deployment.metadata.generation > before;
    env.wait().until(&deployments, "shop-functions", is_rolled).await;
}
