//! Every file of `examples/postgrespolicy` does what it says, with its address and passwords replaced by those of a
//! test server.

use kube::ResourceExt as _;
use serde_json::json;
use stanchion_testkit::postgres::{Postgres, Tls, any};

use super::test_env::TestEnv;

/// What the examples expect on their server.
const GIVEN: &str = "\
CREATE ROLE admin LOGIN SUPERUSER PASSWORD 'change-me'; \
CREATE ROLE crm_admin CREATEROLE; CREATE ROLE operator LOGIN PASSWORD 'change-me' IN ROLE crm_admin; \
CREATE DATABASE shop; CREATE DATABASE billing; CREATE DATABASE crm; CREATE DATABASE orders; CREATE DATABASE invoices";

#[tokio::test]
async fn every_example_does_what_it_says() {
    let (env, server) = (
        TestEnv::new().await,
        Postgres::builder(any()).tls(Tls::default()).start().await,
    );
    for statement in GIVEN.split("; ") {
        server.execute("postgres", statement).await;
    }
    let _operator = env.operator().await;
    let address = format!("localhost:{}", server.port());
    for database in ["billing", "orders", "invoices"] {
        let url = format!("postgresql://admin:change-me@{address}/{database}?sslmode=verify-full");
        env.secret(&format!("{database}-database"), json!({ "DATABASE_URL": url }))
            .await;
    }
    for name in ["billing-app", "crm-login"] {
        env.secret(name, json!({ "password": "change-me" })).await;
    }
    env.secret("db-ca", json!({ "ca.crt": server.authority().unwrap().pem() }))
        .await;
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/postgrespolicy");
    let mut policies = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let text = text
            .replace("db.internal:5432", &address)
            .replace("host: db.internal", "host: localhost")
            .replace("port: 5432", &format!("port: {}", server.port()))
            // The system's CAs do not know the test server, so each policy names its CA.
            .replace("  connection:\n    secretRef:", "  connection:\n    caSecret: {name: db-ca}\n    secretRef:");
        for object in env.cluster.apply(&text, &env.namespace).await {
            if object
                .types
                .as_ref()
                .is_some_and(|types| types.kind == "PostgresPolicy")
            {
                policies.push(object.name_any());
            }
        }
    }
    assert!(policies.len() >= 5, "{policies:?}");
    let plan = env.plan_in("billing", "Pending").await;
    env.annotate_plan(&plan.name_any(), "pgroles.io/approved").await;
    for name in policies {
        let reason = if name == "crm" { "Planned" } else { "Reconciled" };
        env.condition(&name, "Ready", "True", reason).await;
        env.condition(&name, "DatabaseConnected", "True", "Verified")
            .await;
    }
}
