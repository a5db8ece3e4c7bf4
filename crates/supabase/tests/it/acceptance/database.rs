//! The database: checked, prepared once, and not changed again.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use stanchion_api::SupabaseProject;
use stanchion_api::supabase::Phase;
use stanchion_testkit::postgres::{Postgres, Tls, any};

use super::shop;
use crate::database_env::DatabaseEnv;
use crate::test_env::{TestEnv, condition};

/// The operator does what the original leaves to a Job: neither the Job nor its scripts exist.
#[tokio::test]
async fn a18_the_database_has_what_the_services_need() {
    let (env, _operator, _) = shop(json!({})).await;
    assert!(env.all::<Job>().await.is_empty());
    assert!(!env.all::<ConfigMap>().await.contains_key("shop-db-init"));
    let schemas = env.db_env.column("SELECT nspname FROM pg_namespace").await;
    for schema in [
        "_realtime",
        "auth",
        "extensions",
        "graphql_public",
        "realtime",
        "storage",
        "supabase_functions",
    ] {
        assert!(
            schemas.iter().any(|known| known == schema),
            "{schema}: {schemas:?}"
        );
    }
    let roles = env.db_env.column("SELECT rolname FROM pg_roles").await;
    for role in [
        "anon",
        "authenticated",
        "service_role",
        "authenticator",
        "supabase_auth_admin",
        "supabase_storage_admin",
    ] {
        assert!(roles.iter().any(|known| known == role), "{role}: {roles:?}");
    }
}

#[tokio::test]
async fn b02_what_was_prepared_is_not_prepared_again() {
    let env = TestEnv::new().await;
    env
        .db_env
        .execute("CREATE TABLE public.schema_migrations (version bigint); INSERT INTO public.schema_migrations VALUES (42)")
        .await;
    let operator = env.operator().await;
    env.project("shop", json!({})).await;
    env.running("shop").await;
    let record = "SELECT string_agg(number || ' ' || run_at, ',' ORDER BY number) FROM _stanchion.steps";
    let before = env.db_env.scalar(record).await;
    assert!(!before.is_empty());
    // Everything that causes another check: a restart, a request, a change.
    operator.kill().await;
    let second = env.operator().await;
    let asked = json!({ "metadata": { "annotations": { "supabase.strrl.dev/reconcile-at": "now" } } });
    env.patch::<SupabaseProject>("shop", asked).await;
    env.project("shop", json!({ "postgrest": { "replicas": 2 } }))
        .await;
    env.running("shop").await;
    second.idle().await;
    assert_eq!(env.db_env.scalar(record).await, before);
    assert!(env.all::<Job>().await.is_empty());
    let kept = env
        .db_env
        .scalar("SELECT version FROM public.schema_migrations")
        .await;
    assert_eq!(kept, "42");
}

#[tokio::test]
async fn b03_a_wrong_password_is_found_out_and_the_right_one_recovers() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    let mut wrong = env.database_secret();
    wrong["password"] = json!("wrong");
    env.secret("db", wrong).await;
    env.project("shop", json!({})).await;
    let refused = |project: &SupabaseProject| {
        condition(project, "PostgreSQLConnected") == Some(("False".into(), "AuthenticationFailed".into()))
    };
    let project = env.until("shop", refused).await;
    let status = project.status.unwrap();
    assert_eq!(status.phase, Some(Phase::Failed));
    let postgresql = status.dependencies.unwrap().postgresql.unwrap();
    assert!(!postgresql.connected && postgresql.error.is_some());
    assert!(
        !status.message.unwrap().contains("wrong"),
        "it contains no password"
    );
    env.secret("db", env.database_secret()).await;
    let project = env.running("shop").await;
    assert_eq!(condition(&project, "PostgreSQLConnected").unwrap().0, "True");
}

#[tokio::test]
async fn b08_a_password_may_have_any_character() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.db_env
        .execute("CREATE ROLE \"b@ss/1\" SUPERUSER LOGIN PASSWORD 'p@ss/w#rd%'")
        .await;
    let mut secret = env.database_secret();
    json_patch::merge(
        &mut secret,
        &json!({ "username": "b@ss/1", "password": "p@ss/w#rd%" }),
    );
    env.secret("db", secret).await;
    env.project("shop", json!({})).await;
    env.running("shop").await;
    let rest = env.pod("shop-postgrest").await;
    let connected = tokio_postgres::connect(rest.value("PGRST_DB_URI"), tokio_postgres::NoTls).await;
    assert!(connected.is_ok(), "{:?}", connected.err());
}

/// The smallest manifest: no webhook has added defaults, and TLS is required.
#[tokio::test]
async fn b10_the_smallest_manifest_runs_without_a_webhook() {
    let server = Postgres::builder(any())
        .setting("wal_level", "logical")
        .tls(Tls::default())
        .start()
        .await;
    let env = TestEnv::on(DatabaseEnv::of(server, "shop").await).await;
    let _operator = env.operator().await;
    let project = json!({
        "apiVersion": "supabase.strrl.dev/v1alpha1", "kind": "SupabaseProject", "metadata": { "name": "shop" },
        "spec": {
            "projectId": "shop",
            "database": { "secretRef": { "name": "db" } }, "storage": { "secretRef": { "name": "s3" } },
        },
    });
    env.apply::<SupabaseProject>("shop", &project).await;
    env.running("shop").await;
    let auth = env.pod("shop-auth").await;
    assert!(auth.value("GOTRUE_DB_DATABASE_URL").ends_with("?sslmode=require"));
}

#[tokio::test]
async fn b15_anon_reads_a_table_of_a_plain_server_and_changes_are_published() {
    let (env, _operator, _) = shop(json!({})).await;
    env.db_env
        .execute("CREATE TABLE public.todo (id int PRIMARY KEY); INSERT INTO public.todo VALUES (1)")
        .await;
    let rest = env.pod("shop-postgrest").await;
    let (client, connection) = tokio_postgres::connect(rest.value("PGRST_DB_URI"), tokio_postgres::NoTls)
        .await
        .unwrap();
    let running = tokio::spawn(connection);
    client.batch_execute("SET ROLE anon").await.unwrap();
    let row = client.query_one("SELECT id FROM public.todo", &[]).await.unwrap();
    assert_eq!(row.get::<_, i32>(0), 1);
    let refused = client.query("SELECT FROM auth.users", &[]).await.unwrap_err();
    assert!(refused.code().is_some());
    drop(client);
    running.await.unwrap().unwrap();
    let publications = env.db_env.column("SELECT pubname FROM pg_publication").await;
    assert_eq!(publications, ["supabase_realtime"]);
}
