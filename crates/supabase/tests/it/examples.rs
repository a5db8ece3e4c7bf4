//! Every file of `examples/supabaseproject` runs, with its addresses and passwords replaced by those of test servers.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::{Value, json};
use stanchion_api::SupabaseProject;
use stanchion_testkit::postgres::{Postgres, Tls, any};

use crate::database_env::DatabaseEnv;
use crate::test_env::TestEnv;

/// The same Secret with the values of the test servers.
fn adapted(env: &TestEnv, mut secret: Value) -> Value {
    let values = secret["stringData"].as_object_mut().unwrap();
    let ours = if values.contains_key("endpoint") {
        env.storage_secret()
    } else if values.contains_key("database") {
        env.database_secret()
    } else if values.contains_key("ca.crt") {
        json!({ "ca.crt": env.db_env.server.authority().unwrap().pem() })
    } else {
        Value::Null
    };
    values.extend(ours.as_object().cloned().unwrap_or_default());
    secret
}

async fn runs(text: &str) -> String {
    let server = Postgres::builder(any())
        .setting("wal_level", "logical")
        .tls(Tls::default());
    let env = TestEnv::on(DatabaseEnv::of(server.start().await, "shop").await).await;
    let _operator = env.operator().await;
    let authority = env.db_env.server.authority().unwrap().pem().to_owned();
    // Each is created by something else: CloudNativePG, or the person who set up the server.
    for name in ["shop-pg-ca", "postgres-ca"] {
        env.secret(name, json!({ "ca.crt": authority })).await;
    }
    let mut project = String::new();
    for mut object in serde_saphyr::from_multiple::<Value>(text).unwrap() {
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        match object["kind"].as_str().unwrap() {
            "Secret" => drop(env.apply::<Secret>(&name, &adapted(&env, object)).await),
            "ConfigMap" => drop(env.apply::<ConfigMap>(&name, &object).await),
            "SupabaseProject" => {
                // A test server has an address, and no host for each bucket.
                object["spec"]["storage"]["forcePathStyle"] = json!(true);
                env.apply::<SupabaseProject>(&name, &object).await;
                project = name;
            }
            // Servers that an example deploys.
            _ => {}
        }
    }
    let running = env.running(&project).await;
    let conditions = running.status.unwrap().conditions;
    let connected = conditions
        .into_iter()
        .find(|condition| condition.type_ == "PostgreSQLConnected");
    connected.unwrap().message
}

#[tokio::test]
async fn every_example_runs_on_a_verified_server() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/supabaseproject");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let said = runs(&std::fs::read_to_string(&path).unwrap()).await;
        assert!(
            said.starts_with("the server was verified"),
            "{}: {said}",
            path.display()
        );
        count += 1;
    }
    assert!(count >= 6, "{count} examples");
}
