//! A project of an earlier version of the operator, with that version's marks, steps and Secret: it continues, and all
//! its logins and keys stay valid.

use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use stanchion_supabase::database::Login;
use stanchion_testkit::postgres::{Version, extremes};

use crate::database_env::DatabaseEnv;
use crate::test_env::TestEnv;

/// The rows that 89a1792 wrote for steps that have a successor, and what its steps left otherwise.
const BEFORE: &str = "\
DELETE FROM _stanchion.steps WHERE number IN (23, 52, 111); \
INSERT INTO _stanchion.steps (number, name, hash, seen) VALUES \
  (22, 'history of auth', '931d22d42b78d9fa', 'postgres (superuser)'), \
  (110, 'pooler', '6cfa4152117228c3', 'postgres (superuser)'); \
DELETE FROM _stanchion.made WHERE kind = 'connect'; \
GRANT CONNECT ON DATABASE shop TO PUBLIC; \
ALTER ROLE dashboard_user CREATEROLE; \
CREATE OR REPLACE FUNCTION pgbouncer.get_auth(p_usename text) RETURNS TABLE (username text, password text) \
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ \
    SELECT a.rolname::text, a.rolpassword FROM pg_authid a \
    WHERE a.rolname = p_usename AND a.rolcanlogin AND NOT a.rolsuper $$; \
CREATE ROLE app LOGIN PASSWORD 'app'; CREATE TABLE public.orders (id int); GRANT SELECT ON public.orders TO app";

/// The keys of the Secret that were added later.
const LATER: [&str; 3] = [
    "storage-url-signing-key",
    "storage-jwks",
    "realtime-db-enc-key-gcm",
];

/// The earlier mark, which only named the owner of a login.
fn old_mark(namespace: &str, role: &str) -> String {
    format!(
        "DO $$ BEGIN EXECUTE format('COMMENT ON ROLE {role} IS %L', \
         '[stanchion SupabaseProject {namespace}/shop ' || \
         (SELECT oid FROM pg_database WHERE datname = 'shop') || ']'); END $$"
    )
}

async fn upgraded(version: Version) {
    let env = TestEnv::on(DatabaseEnv::new(version).await).await;
    let operator = env.operator().await;
    let spec = json!({ "pooler": {} });
    env.project("shop", spec).await;
    env.running("shop").await;
    operator.idle().await;
    operator.kill().await;
    env.db_env.execute(BEFORE).await;
    let logins: Vec<Login> = Login::ALL
        .into_iter()
        .filter(|login| ![Login::Functions, Login::Analytics].contains(login))
        .collect();
    for login in &logins {
        env.db_env.execute(&old_mark(&env.namespace, login.role())).await;
    }
    let removed: Vec<Value> = LATER
        .iter()
        .map(|key| json!({ "op": "remove", "path": format!("/data/{key}") }))
        .collect();
    let patch: json_patch::Patch = serde_json::from_value(removed.into()).unwrap();
    let secrets = env.api::<Secret>();
    secrets
        .patch("shop-jwt", &PatchParams::default(), &Patch::<Secret>::Json(patch))
        .await
        .unwrap();
    let before = env.values("shop-jwt").await;

    let _operator = env.operator().await;
    let complete = |secret: &Secret| {
        let data = secret.data.as_ref().unwrap();
        LATER.iter().all(|key| data.contains_key(*key))
    };
    env.wait().until(&secrets, "shop-jwt", complete).await;
    env.running("shop").await;
    let closed = async || {
        let public = "SELECT count(*) FROM _stanchion.steps WHERE number = 52";
        env.db_env.scalar(public).await == "1"
    };
    env.wait().eventually("the database is closed", closed).await;

    let after = env.values("shop-jwt").await;
    for (key, value) in &before {
        assert_eq!(after.get(key), Some(value), "{version}: {key} stays as it was");
    }
    for login in logins {
        let key = match login {
            Login::ReadOnly => "database-password-meta".to_owned(),
            Login::PoolerAuth => "database-password-pooler-auth".to_owned(),
            other => format!("database-password-{}", format!("{other:?}").to_lowercase()),
        };
        let database = if login == Login::Pooler {
            "_supabase"
        } else {
            "shop"
        };
        let connected = env
            .db_env
            .server
            .connect(login.role(), &after[&key], database)
            .await;
        connected.unwrap_or_else(|error| panic!("{version} {login:?}: {error:?}"));
    }
    // And so does a login that people created.
    let app = env.db_env.server.connect("app", "app", "shop").await.unwrap();
    app.batch_execute("SELECT FROM public.orders").await.unwrap();
}

#[tokio::test]
async fn an_upgrade_breaks_no_login_and_no_key() {
    for version in extremes() {
        upgraded(version).await;
    }
}
